"""Whose file is next: owners take turns, and within one owner the first to come goes first.

One visitor's thousand files hold up another one's single file by one file at most. A new owner joins at the
end of the round, so that inventing owners gains nothing.
"""

from bisect import insort
from typing import TypeAlias

Place: TypeAlias = tuple[int, int]


class FairLine:
    """The jobs that wait. The caller sees to it that one thread is here at a time."""

    def __init__(self) -> None:
        self._round: dict[str, list[tuple[Place, str]]] = {}
        """What waits of each owner; the owner whose turn it is comes first."""

    def __len__(self) -> int:
        return sum(map(len, self._round.values()))

    def of(self, owner: str) -> int:
        """How many jobs of one owner wait."""
        return len(self._round.get(owner, ()))

    def add(self, job: str, owner: str, place: Place) -> None:
        """Let a job wait; among those of its owner it stands by its place."""
        insort(self._round.setdefault(owner, []), (place, job))

    def take(self) -> str | None:
        """The job whose turn it is, which no longer waits; None if there is none."""
        if not self._round:
            return None
        owner = next(iter(self._round))
        line = self._round.pop(owner)
        _, job = line.pop(0)
        if line:
            self._round[owner] = line
        return job

    def remove(self, job: str) -> None:
        """Take a job out; one that does not wait is no error."""
        for owner, line in list(self._round.items()):
            line[:] = [entry for entry in line if entry[1] != job]
            if not line:
                del self._round[owner]

    def before(self, job: str) -> int | None:
        """How many jobs have their turn before this one; None if it does not wait."""
        for turn, line in enumerate(self._round.values()):
            for rounds, (_, waiting) in enumerate(line):
                if waiting == job:
                    return rounds + self._of_others(turn, rounds)
        return None

    def _of_others(self, turn: int, rounds: int) -> int:
        """Jobs of other owners that go before the one after `rounds` full rounds."""
        lines = enumerate(self._round.values())
        return sum(min(len(line), rounds + (other < turn)) for other, line in lines if other != turn)
