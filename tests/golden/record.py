"""Writes the golden event log anew: `python -m tests.golden.record`. Read the difference before you commit it."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

from specrag.events import Event
from specrag.models.scripted import ScriptedModel
from specrag.pipelines.base import Request
from specrag.tracing.codec import events_to_json
from tests.test_speculative import QUESTION, extract, judge
from tests.toys import filled_store, pipeline

GOLDEN = Path(__file__).with_name("speculative.json")


async def events() -> list[Event]:
    """The events of one run with scripted models, a counting clock and fixed settings."""
    store = filled_store()
    made = pipeline(
        store, ScriptedModel(extract, judge=judge), retrieve=6, drafts=4, passages_per_draft=2, seed=0
    )
    async with aclosing(
        made.run(Request(question=QUESTION, collection="documents", run_id="golden"))
    ) as stream:
        found = [event async for event in stream]
    store.close()
    return found


def normalised(log: list[Event]) -> list[Any]:
    """The log without what differs from one moment or machine to the next."""
    rows: list[Any] = json.loads(events_to_json(log))
    started = rows[0][1]
    started["created_at"] = ""
    started["config"] = {
        name: started["config"][name] for name in ("retrieve", "drafts", "passages_per_draft")
    }
    return _rounded(rows)  # type: ignore[no-any-return]  # a list stays a list


def _rounded(value: Any) -> Any:
    match value:
        case float():
            return round(value, 4)
        case list():
            return [_rounded(item) for item in value]
        case dict():
            return {name: _rounded(item) for name, item in value.items()}
        case _:
            return value


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in normalised(asyncio.run(events())))
    GOLDEN.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
