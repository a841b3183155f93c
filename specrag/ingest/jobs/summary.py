"""What an archive comes to, of which only its files have jobs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from specrag.ingest.jobs.state import ENDED, JobState, State

_ENDS: tuple[State, ...] = ("ready", "duplicate", "failed", "cancelled")
"""What an archive comes to: the first of these that one of its files has."""
_WORDS: dict[State, str] = {
    "duplicate": "were here already",
    "failed": "failed",
    "cancelled": "were cancelled",
}


def summary(archive: JobState, members: Sequence[JobState]) -> JobState:
    """What the files of an archive come to: how many of how many are ready."""
    ends = Counter(member.state for member in members if member.state in ENDED)
    done = sum(ends.values())
    if done < len(members):
        return replace(archive, state="reading", done=done, total=len(members))
    state: State = next((end for end in _ENDS if ends[end]), "cancelled")
    reasons = [member.reason for member in members if member.state == state]
    return replace(
        archive,
        state=state,
        done=done,
        total=len(members),
        pages=sum(member.pages for member in members if member.state == "ready"),
        chunks=sum(member.chunks for member in members if member.state == "ready"),
        message=_sentence(archive.name, ends, len(members)),
        reason=reasons[0] if reasons else None,
        replaced=any(member.replaced for member in members),
    )


def _sentence(name: str, ends: Counter[State], total: int) -> str:
    others = [f"{ends[end]} {word}" for end, word in _WORDS.items() if ends[end]]
    rest = f"; {', '.join(others)}" if others else ""
    return f"{ends['ready']} of {total} files of {name} are ready{rest}."
