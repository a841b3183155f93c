"""Text to token ids and back, for a model that runs elsewhere: by its server, or by a tokenizer of one's own.

Ids go over the wire, so that a marked span is known by construction and no text can become a special token.
A server's tokenizer does read `<|im_end|>` as one, so whatever looks like a special token and is a single
token is cut after its first character before it is sent.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Protocol, TypeAlias, TypeVar

from specrag.errors import ModelError
from specrag.models.base import Conversation, Turn
from specrag.models.render import MARK, Rendered, Renderer, assembled
from specrag.models.server.faults import Fault

Post: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""Sends a body to a path of whichever server is asked, and gives the JSON that answers."""
Ids: TypeAlias = tuple[int, ...]
T = TypeVar("T")

_SPECIAL = re.compile(r"<[^<>\s]{1,60}>|\[[A-Za-z_/]{1,30}\]")
"""What special tokens look like in the families that vLLM serves: <|im_end|>, </s>, [INST]."""
_KEPT = 4096
"""Texts whose ids are remembered: instructions, labels, and passages that are asked about again."""
_LONGEST = 20_000
"""Characters of a text that is worth remembering."""


def looks_special(text: str) -> bool:
    """Whether a token with this text ends a turn, as far as its looks tell."""
    return _SPECIAL.fullmatch(text) is not None


class Vocabulary(Protocol):
    """The tokenizer of a model, wherever it is."""

    @property
    def special(self) -> frozenset[int]:
        """Ids of special tokens, as far as they are known; none of them is written into a line."""
        ...

    async def render(self, conversation: Conversation) -> tuple[str, Rendered]:
        """The prompt as text, and as ids with its marked spans."""
        ...

    async def encode(self, texts: Sequence[str]) -> list[Ids]:
        """Ids of plain texts, each by itself."""
        ...

    async def decode(self, ids: Sequence[int]) -> str:
        """The text of ids."""
        ...


class OwnVocabulary:
    """A tokenizer of transformers in this process."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._renderer = Renderer(tokenizer)
        self.special: frozenset[int] = frozenset(tokenizer.all_special_ids)

    async def render(self, conversation: Conversation) -> tuple[str, Rendered]:
        """See `Vocabulary.render`."""
        rendered = self._renderer.render(conversation)
        return self._tokenizer.decode(rendered.ids), rendered

    async def encode(self, texts: Sequence[str]) -> list[Ids]:
        """See `Vocabulary.encode`."""
        return [tuple(self._renderer.encode(text)) for text in texts]

    async def decode(self, ids: Sequence[int]) -> str:
        """See `Vocabulary.decode`."""
        text: str = self._tokenizer.decode(list(ids))
        return text


class ServedVocabulary:
    """The tokenizer of a server, over its `/tokenize` and `/detokenize`."""

    def __init__(self, post: Post, *, model: str, setting: str) -> None:
        """`setting` names the tokenizer of one's own, for whoever needs it because this does not work."""
        self._post = post
        self._model = model
        self._remedy = f"set {setting} to the Hugging Face id or folder of the model's tokenizer"
        self._known: dict[str, Ids] = {}
        self._templates: dict[tuple[str, ...], list[str]] = {}
        self.special: frozenset[int] = frozenset()

    async def render(self, conversation: Conversation) -> tuple[str, Rendered]:
        """See `Vocabulary.render`."""
        turns = conversation.turns
        pieces = await self._pieces(turns)
        texts = [segment.text for turn in turns for segment in turn.segments]
        encoded = dict(zip(texts, await self.encode(texts), strict=True))
        template = await _together(self._tokenized(piece) for piece in pieces)
        shown = [
            piece + "".join(segment.text for segment in turn.segments)
            for piece, turn in zip(pieces, turns, strict=False)
        ]
        return "".join([*shown, pieces[-1]]), assembled(template, turns, encoded.__getitem__)

    async def prefetch(self, conversations: Sequence[Conversation]) -> None:
        """Ask for what several conversations share once, and not once for each."""
        await self._pieces(conversations[0].turns)
        await self.encode(
            [segment.text for one in conversations for turn in one.turns for segment in turn.segments]
        )

    async def encode(self, texts: Sequence[str]) -> list[Ids]:
        """See `Vocabulary.encode`."""
        once = list(dict.fromkeys(texts))
        ids = await _together(self._plain(text) for text in once)
        found = dict(zip(once, ids, strict=True))
        return [found[text] for text in texts]

    async def decode(self, ids: Sequence[int]) -> str:
        """See `Vocabulary.decode`."""
        answer = await self._sent("/detokenize", {"tokens": list(ids)})
        text = answer.get("prompt") if isinstance(answer, Mapping) else None
        if not isinstance(text, str):
            raise ModelError(f"The server's /detokenize gives no text; {self._remedy}.")
        return text

    async def _plain(self, text: str) -> Ids:
        """Ids of text in which nothing is a special token."""
        looking = list(dict.fromkeys(_SPECIAL.findall(text)))
        ids = await _together(self._tokenized(one) for one in looking)
        special = [one for one, found in zip(looking, ids, strict=True) if len(found) == 1]
        parts = [text]
        for one in special:
            cut = f"{one[0]}{MARK}{one[1:]}"
            parts = list(chain.from_iterable(part.replace(one, cut).split(MARK) for part in parts))
        return tuple(chain.from_iterable(await _together(self._tokenized(part) for part in parts)))

    async def _tokenized(self, text: str) -> Ids:
        """Ids of text as the server sees it, special tokens included."""
        if not text:
            return ()
        known = self._known.get(text)
        if known is not None:
            return known
        ids = await self._asked({"prompt": text, "add_special_tokens": False})
        if len(self._known) >= _KEPT:
            self._known = {}
        if len(text) <= _LONGEST:
            self._known[text] = ids
        return ids

    async def _asked(self, body: Mapping[str, Any]) -> Ids:
        answer = await self._sent("/tokenize", body)
        found = answer.get("tokens") if isinstance(answer, Mapping) else None
        if not isinstance(found, list) or not all(isinstance(token, int) for token in found):
            raise ModelError(f"The server's /tokenize gives no token ids; {self._remedy}.")
        return tuple(found)

    async def _sent(self, path: str, body: Mapping[str, Any]) -> Any:
        try:
            return await self._post(path, {"model": self._model, **body})
        except Fault as fault:
            if fault.kind != "rejected":
                raise
            raise ModelError(
                f"The server {fault.url} refused {path} ({fault.detail}); {self._remedy}."
            ) from fault

    async def _pieces(self, turns: Sequence[Turn]) -> list[str]:
        """What the chat template writes before, between and after the turns' contents."""
        roles = tuple(turn.role for turn in turns)
        if roles not in self._templates:
            opened = roles[-1] == "assistant"
            messages = [{"role": role, "content": MARK} for role in roles]
            ids = await self._asked({"messages": messages, "add_generation_prompt": not opened})
            pieces = (await self.decode(ids)).split(MARK)
            if len(pieces) != len(turns) + 1:
                raise ModelError(f"The server's chat template drops or repeats a turn; {self._remedy}.")
            for text in dict.fromkeys(_SPECIAL.findall("".join(pieces))):
                ids = await self._tokenized(text)
                self.special |= frozenset(ids) if len(ids) == 1 else frozenset()
            self._templates[roles] = [*pieces[:-1], ""] if opened else pieces
        return self._templates[roles]


async def _together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in order; when one fails, the others are stopped before it is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return [task.result() for task in tasks]
