"""How an answer compares with accepted ones: pure functions over texts, with nobody's opinion in them.

Exact match and F1 follow the official scorer of SQuAD v1.1 (normalise, take the best accepted answer), with
HotpotQA's exception for yes, no and noanswer. Both punish a right answer in a full sentence, so a third
figure asks only whether an accepted answer stands in what was said.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final

from specrag.evaluation.questions import FALSE_WORDS, TRUE_WORDS
from specrag.text import normalise_answer

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION: Final = frozenset(string.punctuation)
_CLOSED: Final = frozenset({"yes", "no", "noanswer"})
"""Answers that HotpotQA counts only if they are the whole answer."""
_PIECE = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff]|[^\u2e80-\u9fff\uf900-\ufaff]+")
"""A Chinese or Japanese character, or a run of others."""
_NEGATED = re.compile(r"(?:\bnot|n['’]t)\s+(?:\w+\s+)?(?:true|correct|right)\b")  # noqa: RUF001 - apostrophes


def squad_normalised(text: str) -> str:
    """Lower case, without ASCII punctuation, articles and needless space, in this order as SQuAD does it."""
    bare = "".join(character for character in text.lower() if character not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def tokens_of(text: str) -> list[str]:
    """Words as SQuAD counts them; of scripts that write no spaces, every character is one."""
    return [piece for word in squad_normalised(text).split() for piece in _PIECE.findall(word)]


def exact_match(answer: str, accepted: Sequence[str]) -> float:
    """1 if the answer is one of the accepted, both normalised."""
    said = squad_normalised(answer)
    return float(any(said == squad_normalised(one) for one in accepted))


def f1(answer: str, accepted: Sequence[str]) -> float:
    """The best overlap of words with an accepted answer: harmonic mean of precision and recall, in [0, 1]."""
    return _best(partial(_f1, answer), accepted)


def _f1(answer: str, accepted: str) -> float:
    said, right = squad_normalised(answer), squad_normalised(accepted)
    if said != right and _CLOSED & {said, right}:
        return 0.0
    ours, theirs = tokens_of(answer), tokens_of(accepted)
    return harmonic(sum((Counter(ours) & Counter(theirs)).values()), len(ours), len(theirs))


def harmonic(common: int, ours: int, theirs: int) -> float:
    """F1 of so many common items among ours and theirs; two empty texts agree."""
    if not ours and not theirs:
        return 1.0
    return 2 * common / (ours + theirs) if common else 0.0


def contained(answer: str, accepted: Sequence[str]) -> float:
    """1 if an accepted answer stands in the answer as whole words."""
    return float(any(holds(answer, one) for one in accepted))


def holds(answer: str, wanted: str) -> bool:
    """Whether `wanted` stands in the answer as whole words, apart from case, articles and punctuation."""
    said, looked_for = _words(answer), _words(wanted)
    if not looked_for:
        return False
    width = len(looked_for)
    return any(said[at : at + width] == looked_for for at in range(len(said) - width + 1))


def _words(text: str) -> list[str]:
    return [piece for word in normalise_answer(text).split() for piece in _PIECE.findall(word)]


def yes_or_no(answer: str) -> bool | None:
    """What an answer says to a question of yes or no, by its first such word; None if it says neither."""
    text = answer.casefold()
    if _NEGATED.search(text):
        return False
    words = re.findall(r"\w+", text)
    return next((word in TRUE_WORDS for word in words if word in TRUE_WORDS | FALSE_WORDS), None)


def agrees(answer: str, accepted: Sequence[str]) -> float:
    """1 if the answer says yes or no as one of the accepted does."""
    said = yes_or_no(answer)
    return float(said is not None and any(said == yes_or_no(one) for one in accepted))


def share_said(texts: Sequence[str], accepted: Sequence[str]) -> float:
    """Share of the accepted answers that one of the texts holds."""
    return sum(any(holds(text, one) for text in texts) for one in accepted) / len(accepted)


def rouge_l(answer: str, accepted: Sequence[str]) -> float:
    """The best ROUGE-L: F1 of the longest common subsequence of words (Lin 2004, beta 1)."""
    return _best(partial(_rouge_l, answer), accepted)


def _rouge_l(answer: str, accepted: str) -> float:
    ours, theirs = tokens_of(answer), tokens_of(accepted)
    return harmonic(_common_subsequence(ours, theirs), len(ours), len(theirs))


def _common_subsequence(ours: Sequence[str], theirs: Sequence[str]) -> int:
    lengths = [0] * (len(theirs) + 1)
    for word in ours:
        diagonal = 0
        for place, other in enumerate(theirs, 1):
            above = lengths[place]
            lengths[place] = diagonal + 1 if word == other else max(above, lengths[place - 1])
            diagonal = above
    return lengths[-1]


def precision(cited: Collection[str], gold: Collection[str]) -> float | None:
    """Share of what is cited that is evidence; None if nothing is cited."""
    return len(set(cited) & set(gold)) / len(set(cited)) if cited else None


def recall(cited: Collection[str], gold: Collection[str]) -> float | None:
    """Share of the evidence that is cited; None if no evidence is known."""
    return len(set(cited) & set(gold)) / len(set(gold)) if gold else None


def _best(score: Callable[[str], float], accepted: Sequence[str]) -> float:
    return max(map(score, accepted), default=0.0)
