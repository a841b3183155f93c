"""The runs of an evaluation: the same passages for all, found once, and no label in sight."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from specrag.errors import UsageError
from specrag.evaluation.corpus import OPEN, OpenCorpus
from specrag.evaluation.folder import Folder
from specrag.evaluation.plan import sample
from specrag.evaluation.questions import Question, seen
from specrag.evaluation.runner import Progress
from specrag.evaluation.systems import forked, systems_of
from specrag.models.scripted import ScriptedModel, Written
from specrag.prompts import REWRITE_INSTRUCTION
from specrag.retrieval.chroma import ChromaStore
from specrag.types import Exchange
from tests.evaluation_rig import DATA, PASSAGES, QUESTIONS, evaluated, plan, runner, write
from tests.toys import WordEmbedder


def answers(folder: Folder) -> dict[tuple[str, str], str]:
    return {(line.question, line.system): line.answer for line in folder.finished.values()}


async def test_all_systems_answer_from_the_same_passages(tmp_path: Path) -> None:
    """Each with its own retrieval, a difference between pipelines could be one between searches."""
    folder, told = await evaluated(tmp_path, plan("standard,drafter,speculative,multihop"))
    assert len(folder.finished) == 12
    for question in QUESTIONS:
        traces = [folder.trace(line) for line in folder.finished.values() if line.question == question.id]
        found = {tuple(one.id for one in trace.passages) for trace in traces if trace is not None}
        assert len(found) == 1
        assert set(*found) <= {one.id for one in PASSAGES}
    assert answers(folder)["hours", "speculative"] == "5 hours."
    assert (told[0].done, told[0].left_s, told[-1].done, told[-1].left_s) == (0, None, 12, 0.0)
    assert told[-1].failed == 0


async def test_no_label_reaches_a_system(tmp_path: Path) -> None:
    """Gold passages, accepted answers and ids of the file stay out of every prompt and trace."""
    question = replace(QUESTIONS[0], id="secret-id", answers=("secret-answer",))
    folder, _ = await evaluated(tmp_path, plan(datasets=(replace(DATA, questions=(question,)),)))
    for trace in (tmp_path / "traces").glob("*.json"):
        text = trace.read_text(encoding="utf-8")
        assert "secret" not in text
        assert "gold" not in text
    assert len(folder.finished) == 3


async def test_closed_book_sees_no_passage(tmp_path: Path) -> None:
    """A control that reads the passages, or is told to, is none."""
    prompts: list[str] = []

    def told(text: str) -> Written:
        prompts.append(text)
        return {"answer": "five hours."}

    folder = Folder(tmp_path)
    await runner(folder, plan("closed-book,closed-book-drafter"), drafter=ScriptedModel(told)).run()
    asked = [prompt for prompt in prompts if "Question:" in prompt]
    assert len(asked) == 6
    assert not any("watt-hours" in prompt or "passage" in prompt.lower() for prompt in asked)
    assert set(answers(folder).values()) == {"Five hours."}
    line = folder.finished["bikes", "hours", "closed-book"]
    trace = folder.trace(line)
    assert line.retrieve_ms is None
    assert trace is not None
    assert trace.passages == ()
    assert trace.usage.verifier.completion_tokens == 2


async def test_a_follow_up_is_rewritten_once_for_all(tmp_path: Path) -> None:
    """Rewritten by each pipeline anew, they could be asked different questions."""
    rewrites = 0

    def told(text: str) -> Written:
        nonlocal rewrites
        if REWRITE_INSTRUCTION in text:
            rewrites += 1
            return {"query": "How heavy is the battery?"}
        return write(text)

    earlier = (Exchange(question="What is the battery?", answer="The battery holds 640 watt-hours."),)
    question = replace(QUESTIONS[1], question="How heavy is it?", earlier=earlier)
    folder = Folder(tmp_path)
    made = plan(datasets=(replace(DATA, questions=(question,)),))
    await runner(folder, made, drafter=ScriptedModel(told)).run()
    assert rewrites == 1
    traces = [folder.trace(line) for line in folder.finished.values()]
    assert [trace.rewritten for trace in traces if trace] == ["How heavy is the battery?"] * 3
    assert folder.finished["bikes", "weight", "standard"].answer == "3.4 kilograms."


class Nowhere:
    """A corpus whose collection is gone."""

    @contextmanager
    def hold(self, question: Question) -> Iterator[str]:
        yield f"gone-{question.id}"


async def test_passages_that_cannot_be_found_fail_those_who_read_them(tmp_path: Path) -> None:
    """The closed book needs none, and the evaluation goes on."""
    folder = Folder(tmp_path)
    await runner(folder, plan("standard,closed-book"), corpus=lambda store: Nowhere()).run()
    failed = {line.question: line.error for line in folder.finished.values() if line.status == "failed"}
    assert set(failed) == {"hours", "weight", "bell"}
    assert "gone-hours" in failed["hours"]
    assert sum(line.status == "done" for line in folder.finished.values()) == 3


async def test_a_failed_question_is_counted_named_and_tried_again(tmp_path: Path) -> None:
    """One question that a model cannot take ends neither the others nor the evaluation."""

    def refuse(text: str) -> Written:
        if "heavy" in text:
            raise ValueError("the model is out of memory")
        return write(text)

    folder = Folder(tmp_path)
    told: list[Progress] = []
    await runner(folder, plan("standard"), drafter=ScriptedModel(refuse), tell=told.append).run()
    assert (told[-1].failed, told[-1].done) == (1, 3)
    line = folder.finished["bikes", "weight", "standard"]
    assert (line.status, line.error) == ("failed", "the model is out of memory")
    assert any("weight standard failed: the model is out of memory" in one.text for one in told)
    folder.close()
    folder, told_again = await evaluated(tmp_path, plan("standard"))
    assert (told_again[0].done, told_again[-1].failed) == (2, 0)


async def test_the_time_left_knows_that_systems_differ(tmp_path: Path) -> None:
    """By the mean of all runs, an evaluation that began with its slowest system promised hours."""
    seconds = {"standard": 2.0, "drafter": 10.0}
    now, told = [0.0], list[Progress]()

    def tell(state: Progress) -> None:
        told.append(state)

    def timer() -> float:
        lines = folder.finished.values()
        now[0] = sum(seconds[line.system] for line in lines)
        return now[0]

    folder = Folder(tmp_path)
    await runner(folder, plan("standard,drafter"), tell=tell, timer=timer).run()
    assert told[0].left_s is None
    assert told[2].left_s == 2 * 2.0 + 2 * 10.0  # after one question, whichever system came first
    assert told[-1].left_s == 0.0


def test_a_smaller_sample_is_part_of_a_larger_one() -> None:
    """So that more questions can be added to a folder."""
    questions = [replace(QUESTIONS[0], id=str(number)) for number in range(50)]
    ten, twenty = sample(questions, seed=3, limit=10), sample(questions, seed=3, limit=20)
    assert twenty[:10] == ten
    assert sample(list(reversed(questions)), seed=3, limit=10) == ten
    assert sample(questions, seed=4, limit=10) != ten


async def test_no_system_is_always_first(tmp_path: Path) -> None:
    """The first run of a question would pay for cold caches every time."""
    made = plan()
    firsts = {made.order(replace(QUESTIONS[0], id=str(number)))[0].name for number in range(30)}
    assert firsts == {"standard", "drafter", "speculative"}


async def test_the_open_corpus_is_searched_whole(tmp_path: Path) -> None:
    """A question finds a passage that another one brought; what is indexed already stays."""
    questions = (
        replace(QUESTIONS[0], passages=PASSAGES[2:]),
        replace(QUESTIONS[1], passages=PASSAGES[:2]),
    )
    made = plan("standard", datasets=(replace(DATA, questions=questions),), corpus="open")
    store = ChromaStore(None)
    told: list[tuple[int, int]] = []

    def corpus(store: ChromaStore) -> OpenCorpus:
        return OpenCorpus(
            store, WordEmbedder(), questions, tell=lambda *state: told.append((state[0], state[1]))
        )

    folder = Folder(tmp_path)
    await runner(folder, made, corpus=corpus, store=store).run()
    trace = folder.trace(folder.finished["bikes", "hours", "standard"])
    assert trace is not None
    assert PASSAGES[1].id in {one.id for one in trace.passages}
    assert told == [(5, 5)]
    editions = store.editions(OPEN)
    corpus(store)
    assert store.editions(OPEN) == editions
    store.close()


def test_the_open_corpus_holds_the_passages_of_the_questions_and_no_other() -> None:
    """Another file added to the last slice once more under another name, and left what was there before."""
    texts = [seen("Bike", f"The bike number {number} is new.") for number in range(450)]
    store = ChromaStore(None)

    def opened(count: int) -> list[str]:
        OpenCorpus(store, WordEmbedder(), [replace(QUESTIONS[0], passages=tuple(texts[:count]))])
        return sorted(chunk.id for one in store.editions(OPEN) for chunk in store.chunks(OPEN, one))

    for count in (210, 450, 150):
        assert opened(count) == sorted(one.id for one in texts[:count])
    store.close()


async def test_a_fork_takes_over_what_the_plain_run_wrote(tmp_path: Path) -> None:
    """Groundedness costs one more reading, not four more drafts."""
    systems = (*systems_of("speculative"), forked(systems_of("speculative:grounded=true")[0]))
    assert systems[1].fork == "verify"
    folder, _ = await evaluated(tmp_path, plan(systems=systems))
    plain, other = (folder.trace(folder.finished["bikes", "hours", system.name]) for system in systems)
    assert plain is not None
    assert other is not None
    assert [draft.answer for draft in plain.drafts] == [draft.answer for draft in other.drafts]
    assert other.usage.drafter.completion_tokens == 0
    assert all(draft.scores.grounded for draft in other.drafts if draft.usable)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "No pipeline is named"),
        ("fast", "There is no pipeline “fast”"),
        ("standard,standard", "named twice"),
        ("standard:drafts", "“drafts” is no setting"),
        ("standard:drfts=2", "drfts is not a setting of specrag; did you mean drafts?"),
        ("standard:drafts=99", "SPECRAG_DRAFTS"),
        ("standard:verifier=x", "cannot differ from run to run"),
    ],
)
def test_wrong_systems_are_refused_before_anything_is_run(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        runner(Folder(tmp_path), plan(systems=systems_of(text)))
    assert says in str(refused.value)
