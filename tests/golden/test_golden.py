"""The whole story of a run, event by event, as it was when somebody last read it."""

import json

from tests.golden.record import GOLDEN, events, normalised


async def test_a_run_tells_the_same_story_as_ever() -> None:
    """If this fails on purpose, run `python -m tests.golden.record` and read the difference."""
    expected = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert normalised(await events()) == expected
