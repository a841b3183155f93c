"""The ablations: every variant differs from the plain run in what its name says, and in nothing else."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from specrag.config import load_settings
from specrag.errors import UsageError
from specrag.evaluation.document import Origin, document
from specrag.evaluation.folder import Folder
from specrag.evaluation.outcome import outcomes
from specrag.evaluation.systems import ablations, system_of, systems_of
from specrag.models.scripted import ScriptedModel, Written
from specrag.tracing.trace import Trace
from specrag.types import PartitionName
from tests.evaluation_rig import DATA, QUESTIONS, evaluated, plan, runner, write

GROUNDED = "speculative:grounded=true+weights.grounded=1"
SYSTEMS = (*systems_of("standard,speculative"), *ablations(padded=True))
PLAN = plan(systems=SYSTEMS, datasets=(replace(DATA, questions=QUESTIONS[:1]),))


async def ablated(path: Path) -> tuple[Folder, dict[str, Trace]]:
    folder = Folder(path)
    padded = ScriptedModel(write, judge=lambda text: 0.4, name="padded")
    await runner(folder, PLAN, padded=padded).run()
    traces = {line.system: trace for line in folder.finished.values() if (trace := folder.trace(line))}
    return folder, traces


async def test_each_variant_is_what_its_name_says(tmp_path: Path) -> None:
    """A variant whose setting does not arrive would be a second plain run that "shows no difference"."""
    _, traces = await ablated(tmp_path)
    assert set(traces) == {system.name for system in SYSTEMS}
    plain = traces["speculative"]
    for name in get_args(PartitionName):
        if name != plain.config["partition"]:
            assert traces[f"speculative:partition={name}"].config["partition"] == name
    assert len(traces["speculative:drafts=2"].drafts) == 2
    assert len(traces["speculative:drafts=8"].subsets) > len(plain.subsets)
    assert {len(one.passage_ids) for one in traces["speculative:passages_per_draft=1"].subsets} == {1}
    grounded, padded = traces[GROUNDED], traces["speculative (padded)"]
    assert all(draft.scores.grounded for draft in grounded.drafts)
    assert {draft.scores.self_reflection for draft in padded.drafts} == {0.4}
    for fork in (grounded, padded):
        assert [draft.answer for draft in fork.drafts] == [draft.answer for draft in plain.drafts]
        assert fork.usage.drafter.prompt_tokens == 0


async def test_groundedness_can_change_the_choice(tmp_path: Path) -> None:
    """No preset weighs it: the row "grounded" said "no difference shown", and could not have said anything else."""
    _, traces = await ablated(tmp_path)
    plain, grounded = traces["speculative"], traces[GROUNDED]
    before = [draft.scores.combined for draft in plain.drafts if draft.usable]
    after = [draft.scores.combined for draft in grounded.drafts if draft.usable]
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert grounded.config["weights"] == {**plain.config["weights"], "grounded": 1.0}


def test_a_weight_can_be_typed() -> None:
    """The name in the table's first column is asked for again as it stands there."""
    made = system_of(GROUNDED)
    assert made.settings == {"grounded": True, "weights": {"grounded": 1}}
    assert made.under(load_settings({})).weights.relevance == load_settings({}).weights.relevance
    with pytest.raises(UsageError, match="relevanz"):
        system_of("speculative:weights.relevanz=1").under(load_settings({}))


async def test_variants_are_set_against_the_plain_run(tmp_path: Path) -> None:
    """Against standard RAG, what a partition changes drowns in what the pipeline changes."""
    folder, _ = await ablated(tmp_path)
    origin = Origin(command=(), environment={}, config={})
    found = document(PLAN, list(outcomes(PLAN, folder)), origin)
    against = {one["pipeline"]: one["against"] for one in found["differences"]}
    assert against.pop("speculative") == "standard"
    assert set(against) == {system.name for system in ablations(padded=True)}
    assert set(against.values()) == {"speculative"}
    fork = found["pipelines"][GROUNDED]
    assert set(fork["latency"]) == {"phase.verify", "phase.decide", "p95"}  # the rest it did not do
    assert "total_ms" in found["pipelines"]["speculative:partition=random"]["latency"]


async def test_a_fork_without_its_base_fails_with_a_sentence(tmp_path: Path) -> None:
    """The plain run of a question may have failed, and the others go on."""
    made = replace(PLAN, systems=(*systems_of("standard"), ablations(padded=False)[-1]))
    folder, told = await evaluated(tmp_path, made)
    assert told[-1].failed == 1
    line = folder.finished["bikes", "hours", GROUNDED]
    assert line.error == f"There is no run of speculative whose work {GROUNDED} could take over."


async def test_the_padded_verifier_is_warmed_up_as_well(tmp_path: Path) -> None:
    """It holds weights of its own: its first run paid for bringing them into memory, and the tree's did not."""
    read: list[str] = []

    def told(text: str) -> Written:
        read.append(text)
        return write(text)

    await runner(Folder(tmp_path), PLAN, padded=ScriptedModel(told, name="padded")).run()
    assert "Say one word" in read[0]


def test_the_padded_variant_is_offered_where_it_can_be_timed() -> None:
    assert [one.name for one in ablations(padded=True) if one.padded] == ["speculative (padded)"]
    assert not any(one.padded for one in ablations(padded=False))
