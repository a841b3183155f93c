"""A small evaluation over toys: questions with known answers, and models that write what a script says."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from specrag.build import PIPELINES
from specrag.config import Settings, load_settings
from specrag.evaluation.corpus import Corpus, GivenCorpus
from specrag.evaluation.folder import Folder
from specrag.evaluation.plan import Plan
from specrag.evaluation.questions import Dataset, Question, seen
from specrag.evaluation.runner import Progress, Runner
from specrag.evaluation.systems import systems_of
from specrag.models.base import LanguageModel
from specrag.models.scripted import ScriptedModel, Written
from specrag.pipelines.base import Pipeline
from specrag.retrieval.chroma import ChromaStore
from specrag.types import PipelineName
from tests.toys import WordEmbedder, tools

TEXTS = (
    ("Battery", "The battery holds 640 watt-hours and weighs 3.4 kilograms."),
    ("Charging", "A full charge of the battery takes 5 hours."),
    ("Load", "The bike carries at most 160 kilograms with the battery."),
    ("History", "The firm that makes the battery was founded by Ada Brennick."),
    ("Soup", "The soup of the festival needs 640 onions and a battery of pots."),
)
PASSAGES = tuple(seen(title, text) for title, text in TEXTS)
QUESTIONS = (
    Question(
        id="hours",
        question="How long does a full charge take?",
        answers=("5 hours",),
        passages=PASSAGES,
        gold=frozenset({PASSAGES[1].id}),
    ),
    Question(
        id="weight",
        question="How heavy is the battery?",
        answers=("3.4 kilograms",),
        passages=PASSAGES,
        gold=frozenset({PASSAGES[0].id}),
    ),
    Question(id="bell", question="Which colour has the bell?", answers=(), passages=PASSAGES),
)
DATA = Dataset(name="bikes", sha256="0" * 64, questions=QUESTIONS)


def write(text: str) -> Written:
    """Answers with what stands in the passages before it; the bell is nowhere."""
    question = text.partition("Question:")[2].partition("\n")[0]
    if "bell" in question:
        return {"rationale": "nothing is said of it.", "answer": "the passages do not say."}
    fact = "5 hours" if "full charge" in question else "3.4 kilograms"
    return {"rationale": "it is stated.", "answer": f"{fact if fact in text else '640 onions'}."}


def model() -> ScriptedModel:
    return ScriptedModel(write, judge=lambda text: 0.2 if "onions" in text else 0.9)


def plan(names: str = "standard,drafter,speculative", **changes: object) -> Plan:
    made = Plan(datasets=(DATA,), systems=systems_of(names), settings=load_settings({}), seed=1)
    return replace(made, **changes)  # type: ignore[arg-type]  # fields of a plan


def runner(
    folder: Folder,
    made: Plan,
    *,
    drafter: LanguageModel | None = None,
    tell: Callable[[Progress], None] = lambda _: None,
    corpus: Callable[[ChromaStore], Corpus] = lambda store: GivenCorpus(store, WordEmbedder()),
    store: ChromaStore | None = None,
    padded: LanguageModel | None = None,
    timer: Callable[[], float] = time.perf_counter,
) -> Runner:
    """A runner over toys that has begun its folder."""
    store = store or ChromaStore(None)
    working = replace(tools(store, drafter or model()), settings=made.settings)
    folder.begin(made.document(working.environment, working.config()))

    def pipeline(name: PipelineName, settings: Settings) -> Pipeline:
        return PIPELINES[name](replace(working, settings=settings))

    return Runner(
        tools=working,
        pipeline=pipeline,
        corpus=corpus(store),
        folder=folder,
        plan=made,
        padded=padded,
        tell=tell,
        timer=timer,
    )


async def evaluated(path: Path, made: Plan | None = None) -> tuple[Folder, Sequence[Progress]]:
    """A finished evaluation with what it told."""
    folder = Folder(path)
    told: list[Progress] = []
    await runner(folder, made or plan(), tell=told.append).run()
    return folder, told
