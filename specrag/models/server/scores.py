"""From what a server says of prompts to the scores of requests: spans by position, Yes and No by id."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from specrag.models.base import Choice, ScoredToken, TokenScores
from specrag.models.render import Rendered
from specrag.models.server.vocabulary import Vocabulary
from specrag.models.server.wire import Reading

_BOUND = (
    "The verifier's server names the likeliest tokens only, and Yes or No is not among them for every draft: "
    "self-reflection is then a bound."
)


async def first_tokens(choice: Choice | None, vocabulary: Vocabulary) -> dict[str, set[int]]:
    """First tokens of each option's spellings, without those that begin several options."""
    if choice is None:
        return {}
    first = {
        option: {ids[0] for ids in await vocabulary.encode(spellings)}
        for option, spellings in choice.options.items()
    }
    counts = Counter(token for tokens in first.values() for token in tokens)
    return {option: {token for token in tokens if counts[token] == 1} for option, tokens in first.items()}


def numbered(reading: Reading, texts: Mapping[int, str]) -> Reading:
    """The same by ids, of a server that names likely tokens by their texts."""
    following: dict[int | str, float] = {
        token: reading.following[text] for token, text in texts.items() if text in reading.following
    }
    return replace(reading, following=following)


def scores_of(
    item: Rendered, reading: Reading, options: dict[str, set[int]], notes: tuple[str, ...]
) -> TokenScores:
    """Scores of one request; without spans where the server says nothing of prompts."""
    spans: dict[str, tuple[ScoredToken, ...]] = {}
    if reading.prompt is not None:
        for name, (start, end) in item.spans.items():
            found = [token for token in reading.prompt[start:end] if token is not None]
            spans[name] = tuple(ScoredToken(text=text, logprob=min(value, 0.0)) for text, value in found)
    following = reading.following
    choice = {
        option: math.fsum(math.exp(following[token]) for token in tokens if token in following)
        for option, tokens in options.items()
    }
    if any(choice.values()) and not all(choice.values()):
        # an option that is not even among the likeliest tokens is at most as likely as the last of them
        least = math.exp(min(following.values()))
        choice = {option: value or least for option, value in choice.items()}
        notes = (*notes, _BOUND)
    return TokenScores(spans=spans, choice=choice, prompt_tokens=len(item.ids), notes=notes)
