"""After a crash the systems that are left begin with what the finished ones began with."""

from dataclasses import replace
from pathlib import Path

import pytest

from specrag.evaluation.folder import Folder
from specrag.evaluation.plan import Plan
from specrag.evaluation.problems import EvaluationError
from specrag.evaluation.runner import Progress
from specrag.models.scripted import ScriptedModel, Written
from specrag.prompts import REWRITE_INSTRUCTION
from specrag.tracing.trace import Trace
from specrag.types import Exchange
from tests.evaluation_rig import DATA, QUESTIONS, plan, runner, write

EARLIER = (Exchange(question="What is the battery?", answer="The battery holds 640 watt-hours."),)
FOLLOW_UP = replace(QUESTIONS[1], question="How heavy is it?", earlier=EARLIER)


def follow_up(names: str) -> Plan:
    return plan(names, datasets=(replace(DATA, questions=(FOLLOW_UP,)),))


def rewriting(question: str) -> ScriptedModel:
    """A model that makes this of the follow-up, as one that samples, or another build, might."""

    def told(text: str) -> Written:
        return {"query": question} if REWRITE_INSTRUCTION in text else write(text)

    return ScriptedModel(told)


def traces(folder: Folder) -> dict[str, Trace]:
    found = ((line.system, folder.trace(line)) for line in folder.finished.values())
    return {system: trace for system, trace in found if trace is not None}


async def test_after_a_stop_between_two_systems_both_have_the_same_before_them(tmp_path: Path) -> None:
    """Rewritten and searched anew, the second system was asked another question over other passages."""
    made = follow_up("standard,drafter")
    folder = Folder(tmp_path)

    def stop(state: Progress) -> None:
        if state.done:
            raise EvaluationError("The machine is lost.")

    first = rewriting("How heavy is the battery of the bike?")
    with pytest.raises(EvaluationError, match="lost"):
        await runner(folder, made, drafter=first, tell=stop).run()
    assert len(folder.finished) == 1
    folder.close()
    folder = Folder(tmp_path)
    await runner(folder, made, drafter=rewriting("Does the battery have onions in a soup?")).run()
    one, other = traces(folder).values()
    assert one.rewritten == other.rewritten == "How heavy is the battery of the bike?"
    assert one.passages == other.passages
    standard, drafter = folder.finished.values()
    assert standard.retrieve_ms == drafter.retrieve_ms is not None


async def test_a_system_that_is_added_begins_with_the_same(tmp_path: Path) -> None:
    """The closed book reads no passage, and has been asked the question as somebody rewrote it."""
    for names, model in [
        ("closed-book", rewriting("How heavy is the battery of the bike?")),
        ("closed-book,standard", rewriting("Does the battery have onions in a soup?")),
        ("multihop,speculative", rewriting("Does the battery have a firm?")),
    ]:
        folder = Folder(tmp_path)
        await runner(folder, follow_up(names), drafter=model).run()
        folder.close()
    found = traces(folder)
    assert len(found) == 4
    assert {trace.rewritten for trace in found.values()} == {"How heavy is the battery of the bike?"}
    assert found["standard"].passages == found["speculative"].passages == found["multihop"].passages
