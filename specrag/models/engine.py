"""How a causal model of transformers is run: as a token tree, or as a padded batch where that is impossible.

Both engines read several sequences in one forward pass and then decode a row for each. `TreeEngine` computes
shared prefixes once and pads nothing; it needs a model with plain causal attention. Whether it gives what the
model itself gives is checked at load (`choose`), and a model that fails the check gets `BatchEngine`.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from specrag.models import attention
from specrag.models.tree import grow

_log = logging.getLogger(__name__)

Ids: TypeAlias = Sequence[int]
EngineName: TypeAlias = Literal["tree", "batch"]
TOLERANCE = 1e-4
"""Largest difference per token that the self-check allows, in natural log of the probability."""

_LIKELIEST = 32
"""Tokens at every position that the self-check compares."""


class Rows(Protocol):
    """Rows that are being decoded."""

    def step(self, ids: Sequence[int]) -> Any:
        """Feed one token to every row; logits (rows, V) of the next ones."""
        ...

    def keep(self, alive: Sequence[int]) -> None:
        """Drop all rows but these, in this order."""
        ...


class Engine(Protocol):
    """Reads sequences and decodes after them."""

    @property
    def name(self) -> EngineName:
        """For people: how the model is run."""
        ...

    def read(self, sequences: Sequence[Ids], wanted: Sequence[Sequence[int]]) -> list[Any]:
        """One forward pass over all sequences: for each the logits (n, V) at its wanted positions."""
        ...

    def begin(self, prompts: Sequence[Ids], room: int) -> tuple[Any, Rows]:
        """Read prompts: logits (m, V) after each, and their rows with `room` more places."""
        ...


class TreeEngine:
    """All sequences packed into one row, every shared prefix once."""

    name: EngineName = "tree"

    def __init__(self, model: Any) -> None:
        attention.register()
        model.set_attn_implementation(attention.NAME)
        self._model = model

    def read(self, sequences: Sequence[Ids], wanted: Sequence[Sequence[int]]) -> list[Any]:
        """See `Engine.read`."""
        tree = grow(sequences)
        places = [
            [path[position] for position in group] for path, group in zip(tree.paths, wanted, strict=True)
        ]
        needed = sorted({place for group in places for place in group})
        row_of = {place: row for row, place in enumerate(needed)}
        logits = self._pass(tree, None, needed)  # (needed, V)
        return [logits[[row_of[place] for place in group]] for group in places]

    def begin(self, prompts: Sequence[Ids], room: int) -> tuple[Any, Rows]:
        """See `Engine.begin`."""
        tree = grow(prompts)
        cache = attention.TreeCache()
        needed = sorted({path[-1] for path in tree.paths})
        logits = self._pass(tree, cache, needed)
        last = [needed.index(path[-1]) for path in tree.paths]
        return logits[last], _TreeRows(self._model, cache.rows(tree.paths, room))

    def _pass(self, tree: Any, cache: Any, needed: list[int]) -> Any:
        import torch

        return self._model(
            input_ids=torch.tensor([tree.tokens]),
            position_ids=torch.tensor([tree.positions]),
            cache=cache,
            use_cache=cache is not None,
            logits_to_keep=torch.tensor(needed),
            plan=attention.TreePlan(tree),
        ).logits[0]


class _TreeRows:
    def __init__(self, model: Any, cache: attention.RowCache) -> None:
        self._model = model
        self._cache = cache

    def step(self, ids: Sequence[int]) -> Any:
        import torch

        plan = self._cache.advance()
        return self._model(
            input_ids=torch.tensor(ids)[:, None],
            position_ids=self._cache.lengths[:, None] - 1,
            cache=self._cache,
            use_cache=True,
            plan=plan,
        ).logits[:, -1]

    def keep(self, alive: Sequence[int]) -> None:
        self._cache.keep(alive)


class BatchEngine:
    """A padded batch under the model's own attention: right-padded to read, left-padded to go on decoding."""

    name: EngineName = "batch"

    def __init__(self, model: Any) -> None:
        self._model = model

    def read(self, sequences: Sequence[Ids], wanted: Sequence[Sequence[int]]) -> list[Any]:
        """See `Engine.read`; the padding comes after everything that is read."""
        import torch

        device = self._model.device
        longest = max(map(len, sequences))
        tokens = torch.zeros((len(sequences), longest), dtype=torch.long)
        mask = torch.zeros((len(sequences), longest), dtype=torch.long)
        for row, ids in enumerate(sequences):
            tokens[row, : len(ids)] = torch.tensor(ids)
            mask[row, : len(ids)] = 1
        columns = sorted({position for group in wanted for position in group})
        column_of = {column: place for place, column in enumerate(columns)}
        logits = self._model(
            input_ids=tokens.to(device),
            attention_mask=mask.to(device),
            position_ids=torch.arange(longest, device=device)[None].expand(len(sequences), -1),
            use_cache=False,
            logits_to_keep=torch.tensor(columns, device=device),
        ).logits.cpu()  # (m, columns, V)
        if logits.shape[1] == longest:  # this model keeps all columns, whatever it is asked for
            logits = logits[:, columns]
        return [logits[row, [column_of[position] for position in group]] for row, group in enumerate(wanted)]

    def begin(self, prompts: Sequence[Ids], room: int) -> tuple[Any, Rows]:  # noqa: ARG002 - its cache grows
        """See `Engine.begin`; holes on the left are masked and positions skip them."""
        import torch
        from transformers import DynamicCache

        cache = DynamicCache(config=self._model.config)
        width = max(map(len, prompts))
        tokens = torch.zeros((len(prompts), width), dtype=torch.long)
        mask = torch.zeros((len(prompts), width), dtype=torch.long)
        positions = torch.zeros((len(prompts), width), dtype=torch.long)
        for row, ids in enumerate(prompts):
            tokens[row, width - len(ids) :] = torch.tensor(ids)
            mask[row, width - len(ids) :] = 1
            positions[row, width - len(ids) :] = torch.arange(len(ids))
        rows = _BatchRows(self._model, cache, mask, positions[:, -1])
        return rows.forward(tokens, positions), rows


class _BatchRows:
    def __init__(self, model: Any, cache: Any, mask: Any, last: Any) -> None:
        self._model = model
        self._cache = cache
        self._mask = mask
        self._last = last  # (m,) position of the newest token

    def step(self, ids: Sequence[int]) -> Any:
        import torch

        self._mask = torch.cat([self._mask, self._mask.new_ones((len(ids), 1))], dim=1)
        self._last = self._last + 1
        return self.forward(torch.tensor(ids)[:, None], self._last[:, None])

    def keep(self, alive: Sequence[int]) -> None:
        import torch

        chosen = torch.tensor(alive)
        self._cache.batch_select_indices(chosen)
        self._mask, self._last = self._mask[chosen], self._last[chosen]

    def forward(self, tokens: Any, positions: Any) -> Any:
        """Logits (m, V) after the last token of every row."""
        device = self._model.device
        return (
            self._model(
                input_ids=tokens.to(device),
                attention_mask=self._mask.to(device),
                position_ids=positions.to(device),
                cache=self._cache,
                use_cache=True,
                logits_to_keep=1,
            )
            .logits[:, -1]
            .cpu()
        )


ENGINES: dict[EngineName, Callable[[Any], Engine]] = {"tree": TreeEngine, "batch": BatchEngine}


def choose(model: Any) -> Engine:
    """The tree where it agrees with the model's own attention on made-up sequences, else the padded batch.

    Whatever the model raises when it reads and decodes them is passed on.
    """
    own = model.config._attn_implementation  # noqa: SLF001 - transformers has no public name for it
    batch = BatchEngine(model)
    sequences = _probes(model.config.get_text_config().vocab_size)
    batch.begin([ids[:-1] for ids in sequences], 1)[1].step(
        [ids[-1] for ids in sequences]
    )  # it can, or raises
    if str(model.device) != "cpu" or not sees_everything(model.config.get_text_config()):
        return batch
    wanted = [list(range(len(ids))) for ids in sequences]
    expected = [batch.read([ids], [places])[0] for ids, places in zip(sequences, wanted, strict=True)]
    try:
        tree = TreeEngine(model)
        if _near(tree.read(sequences, wanted), expected) and _decodes_alike(tree, sequences, expected):
            return tree
    except Exception as error:  # noqa: BLE001 - whatever an architecture trips over, the batch is right
        _log.info("no token tree for this model: %r", error)
    model.set_attn_implementation(own)
    return batch


def sees_everything(config: Any) -> bool:
    """Whether a token sees all tokens before it, as far as the configuration tells.

    Windows are longer than the made-up sequences, and some models have them in their mask alone, so the
    self-check would not notice them.
    """
    kinds = set(getattr(config, "layer_types", None) or ())
    if kinds - {"full_attention"} or getattr(config, "attention_chunk_size", None):
        return False
    window = getattr(config, "sliding_window", None)
    if not window or getattr(config, "use_sliding_window", True) is False:
        return True
    return int(window) >= int(getattr(config, "max_position_embeddings", 0) or 0)


def _probes(vocabulary: int) -> list[list[int]]:
    """Three sequences with a common beginning, two of them with a longer one, all of different lengths."""
    ids = [(7919 * number + 13) % vocabulary for number in range(64)]
    return [[*ids[:12], *ids[20:30]], [*ids[:12], *ids[20:24], *ids[40:57]], [*ids[:12], *ids[60:64]]]


def _near(got: list[Any], expected: list[Any]) -> bool:
    """Whether logits (n, V) give the likeliest tokens of `expected` the same log-probabilities."""
    for one, other in zip(got, expected, strict=True):
        top = other.log_softmax(-1).topk(_LIKELIEST, dim=-1)
        if (one.log_softmax(-1).gather(-1, top.indices) - top.values).abs().max() > TOLERANCE:
            return False
    return True


def _decodes_alike(engine: Engine, sequences: list[list[int]], expected: list[Any]) -> bool:
    """Whether feeding the last tokens one by one gives what reading them gave."""
    fed = 2
    logits, rows = engine.begin([ids[:-fed] for ids in sequences], fed)
    alike = _near(list(logits[:, None]), [one[-1 - fed :][:1] for one in expected])
    for number in range(fed, 0, -1):
        logits = rows.step([ids[-number] for ids in sequences])
        at = [one[len(ids) - number :][:1] for one, ids in zip(expected, sequences, strict=True)]
        alike = alike and _near(list(logits[:, None]), at)
    return alike
