"""Record the runs that the walkthrough shows, with the embedded weights on the sample collection.

From the root of the repository: `python -m scripts.record_walkthrough` (under a minute on two quiet cores).
Each run is written to `assets/walkthrough/<name>.json` as its events, which is all that the tour needs: what
they fold to, the versions and the machine included, is read from them. The first question is asked once
unrecorded, so that what a process makes only once (caches, compiled code) is in nobody's times.
"""

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any, Final

from specrag.build import Parts
from specrag.config import load_settings
from specrag.events import Event, RunStarted
from specrag.library.library import SAMPLE
from specrag.pipelines.base import Request
from specrag.recording import Recording
from specrag.sample import ensure_sample
from specrag.tracing.codec import events_to_json
from specrag.tracing.trace import Trace, fold
from specrag.ui.tour import FOLDER

QUESTIONS: Final = {
    "disputed": "What is the maximum load of the Larkspur 3?",
    "plain": "How much energy does the Larkspur 3 battery hold?",
}
"""By the name of the recording: one that the documents dispute, and one that they do not."""
DIGITS: Final = 5
"""Of every number: enough for what is shown, and a third of the size."""


def main() -> None:
    """Parse the command line and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=FOLDER, help="where the recordings go")
    folder: Path = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    for name, events in asyncio.run(record()).items():
        trace = fold(events)
        check(name, trace)
        write(folder / f"{name}.json", events)
        size = (folder / f"{name}.json").stat().st_size
        print(f"{name}: {trace.elapsed_ms / 1000:.1f} s, {len(events)} events, {size / 1000:.0f} kB")


async def record() -> dict[str, list[Event]]:
    """The events of each question's run, one after the other."""
    parts = Parts(load_settings(), in_memory=True)
    try:
        await asyncio.to_thread(ensure_sample, parts.indexer)
        await _one(parts, QUESTIONS["disputed"], "unrecorded")
        return {name: await _one(parts, text, f"walkthrough-{name}") for name, text in QUESTIONS.items()}
    finally:
        parts.close()


async def _one(parts: Parts, question: str, run_id: str) -> list[Event]:
    recording = Recording()
    request = Request(question=question, collection=SAMPLE, run_id=run_id)
    await recording.record(parts.speculative, request, deadline_s=parts.settings.deadline_s)
    return recording.events


def check(name: str, trace: Trace) -> None:
    """Refuse a run that the steps of the tour could not speak of.

    Raises:
        SystemExit: with what is missing.
    """
    if trace.status != "done" or trace.decision is None or trace.decision.kind != "selected":
        raise SystemExit(f"{name}: the run was not decided between drafts; nothing was written.")
    if bool(trace.decision.sides) != (name == "disputed"):
        raise SystemExit(f"{name}: the run is {'' if trace.decision.sides else 'not '}disputed.")


def write(path: Path, events: list[Event]) -> None:
    """One event a line, so that a new recording can be compared with the old one."""
    rows: list[list[Any]] = json.loads(events_to_json(events))
    if isinstance(events[0], RunStarted):
        rows[0][1]["config"].pop("home", None)
    lines = ",\n".join(json.dumps(_short(row), ensure_ascii=False) for row in rows)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def _short(value: Any) -> Any:
    """Numbers with few digits."""
    match value:
        case float():
            return float(f"{value:.{DIGITS}g}") if abs(value) < 1 else round(value, DIGITS - 2)
        case list():
            return [_short(item) for item in value]
        case dict():
            return {key: _short(item) for key, item in value.items()}
        case _:
            return value


if __name__ == "__main__":
    main()
