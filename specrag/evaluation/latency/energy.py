"""How much energy the processor has taken, where the system tells it: Intel's and AMD's counters of joules.

Linux shows them as files (powercap, "RAPL"). Many systems keep them from users, and virtual machines have
none; then nothing is estimated, and the report says that the system does not tell.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

POWERCAP: Final = Path("/sys/class/powercap")
_MICRO: Final = 1e-6


class Meter:
    """Adds up the counters of all packages; a counter that begins anew is noticed."""

    def __init__(self, folder: Path = POWERCAP) -> None:
        self._zones = _zones(folder)
        self._last = [_joules(zone) for zone in self._zones]
        self._total = 0.0

    @property
    def told(self) -> bool:
        """Whether this system tells its energy at all."""
        return bool(self._zones)

    def joules(self) -> float | None:
        """Joules since the meter was made; None where the system does not tell."""
        if not self._zones:
            return None
        for place, zone in enumerate(self._zones):
            now = _joules(zone)
            passed = now - self._last[place]
            self._total += passed if passed >= 0 else passed + _joules(zone, "max_energy_range_uj")
            self._last[place] = now
        return self._total


def _zones(folder: Path) -> Sequence[Path]:
    """The packages: their parts (cores, memory) are counted in them."""
    found = []
    for zone in sorted(folder.glob("intel-rapl:*")):
        with suppress(OSError, ValueError):  # no right to read it
            if (zone / "name").read_text("ascii").startswith("package"):
                _joules(zone)
                _joules(zone, "max_energy_range_uj")
                found.append(zone)
    return found


def _joules(zone: Path, name: str = "energy_uj") -> float:
    return int((zone / name).read_text("ascii")) * _MICRO
