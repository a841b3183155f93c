"""When well-scored drafts contradict each other, and how a person is told.

A dispute is between sources: each side says something else about the same thing, in amounts and names that
its passages really hold, and the sides do not rest on the very same passages. Neither side is preferred here;
`decide` lets the newer source win where the scores hardly tell the sides apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from specrag.claims import agree, contradict, holds
from specrag.types import Draft, Passage, Side


def sides_of(
    drafts: Sequence[Draft], answers: Sequence[Sequence[int]], passages: Sequence[Passage]
) -> tuple[Side, ...]:
    """The sides of a dispute, the chosen one first; none if nobody contradicts it.

    `answers` are the drafts of each well-scored answer, its best draft first, the chosen answer first. An
    answer from the very passages of the chosen one is another reading of them and no dispute between sources;
    an answer that cites nothing has no source at all.
    """
    by_id = {passage.id: passage for passage in passages}
    chosen = drafts[answers[0][0]]
    sides = [_side(drafts, answers[0], by_id)]
    if not _sourced(chosen, by_id):
        return ()
    for members in answers[1:]:
        rival = drafts[members[0]]
        known = next((place for place, side in enumerate(sides) if agree(side.answer, rival.answer)), None)
        if not _sourced(rival, by_id):
            continue
        if known is not None:
            sides[known] = _joined(sides[known], _side(drafts, members, by_id))
        elif contradict(chosen.answer, rival.answer) and set(rival.citations) != set(chosen.citations):
            sides.append(_side(drafts, members, by_id))
    return tuple(sides) if len(sides) > 1 else ()


def _sourced(draft: Draft, passages: Mapping[str, Passage]) -> bool:
    """Whether the draft cites passages, and those that are known hold what it says."""
    texts = [
        f"{passages[one].title} {passages[one].published_at or ''} {passages[one].text}"
        for one in draft.citations
        if one in passages
    ]
    return bool(draft.citations) and (not texts or holds(texts, draft.answer))


def conflict_of(sides: Sequence[Side], passages: Sequence[Passage]) -> str | None:
    """One sentence that names every side with its sources, and one on which is newer where all are dated."""
    if not sides:
        return None
    *others, last = [f"{_speakers(side)} “{side.answer.rstrip(' .')}”" for side in sides]
    pair = len(others) == 1
    text = f"Sources disagree: {', '.join(others)}, {'but' if pair else 'and'} {last}."
    date = newest(sides, passages)
    return f"{text} The source of {date} is the {'newer' if pair else 'newest'} one." if date else text


def source_of(passage: Passage) -> str:
    """A passage as a source is named to a person: its title, with the date that the document states."""
    date = f" ({passage.published_at})" if passage.published_at else ""
    return f"{passage.title or passage.source}{date}"


def _side(drafts: Sequence[Draft], members: Sequence[int], passages: Mapping[str, Passage]) -> Side:
    cited = tuple(dict.fromkeys(one for index in members for one in drafts[index].citations))
    sources = tuple(source_of(passages[one]) if one in passages else one for one in cited)
    return Side(
        draft_index=members[0],
        answer=drafts[members[0]].answer,
        passage_ids=cited,
        sources=sources if passages else (),
    )


def _joined(side: Side, other: Side) -> Side:
    """A side with what another draft of the same claim rests on."""
    both = dict(zip(side.passage_ids, side.sources, strict=False))
    both |= dict(zip(other.passage_ids, other.sources, strict=False))
    ids = tuple(dict.fromkeys((*side.passage_ids, *other.passage_ids)))
    return replace(side, passage_ids=ids, sources=tuple(both[one] for one in ids if one in both))


def _speakers(side: Side) -> str:
    sources = list(dict.fromkeys(side.sources)) or [f"the passages of draft {side.draft_index + 1}"]
    verb = "says" if len(side.sources) > 0 and len(sources) == 1 else "say"
    return f"{' and '.join(sources)} {verb}"


def newest(sides: Sequence[Side], passages: Sequence[Passage]) -> str | None:
    """The date of the newest source, if every side has a dated one and one side's is clearly the last.

    ISO dates are compared as far as both go: 2025 is neither before nor after 2025-03-10.
    """
    *others, last = sorted(_dates(sides, passages)) or [""]
    later = all(last[: len(other)] > other[: len(last)] for other in others)  # never, beside an undated one
    return last if last and later else None


def newest_side(sides: Sequence[Side], passages: Sequence[Passage]) -> Side | None:
    """The side with the newest source, under the same condition."""
    date = newest(sides, passages)
    dates = _dates(sides, passages)
    return sides[dates.index(date)] if date else None


def rests_on_newest(
    drafts: Sequence[Draft], members: Sequence[int], sides: Sequence[Side], passages: Sequence[Passage]
) -> str:
    """Which draft the newest source belongs to: the best of `members`, or another that says the same.

    A side has the sources of all who make its claim, so the draft that speaks for it may rest on an older
    one.
    """
    date, best = newest(sides, passages), members[0]
    fresh = {passage.id for passage in passages if passage.published_at == date}

    def cites(index: int) -> bool:
        return not fresh.isdisjoint(drafts[index].citations)

    if cites(best):
        return f"draft {best + 1} rests on the one of {date}"
    same = (
        index
        for index, other in enumerate(drafts)
        if other.usable and not other.abstained and agree(drafts[best].answer, other.answer)
    )
    other = next((index for index in (*members, *same) if cites(index)), None)
    if other is None:  # a trace from a file may say anything
        return f"the one of {date} says the same as draft {best + 1}"
    return f"draft {best + 1} says the same as draft {other + 1}, which rests on the one of {date}"


def _dates(sides: Sequence[Side], passages: Sequence[Passage]) -> list[str]:
    """The newest date of each side's sources; empty for a side without one."""
    dates = {passage.id: passage.published_at or "" for passage in passages}
    return [max((dates.get(one, "") for one in side.passage_ids), default="") for side in sides]
