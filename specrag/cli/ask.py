"""`specrag ask`: one question, over the files given with `--docs` or over a kept collection."""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from specrag.build import Parts
from specrag.cli.common import FAILURE, Json, Password, Tell, friendly, print_json, shelves, taken, told_parts
from specrag.conversation import conversation
from specrag.errors import DocumentError, TraceError
from specrag.events import (
    Decided,
    DraftFinished,
    DraftsVerified,
    Event,
    HopFinished,
    HopStarted,
    PassagesRetrieved,
    QuestionRewritten,
    SubsetsFormed,
)
from specrag.ingest.files import files_of
from specrag.library.library import OPERATOR, OWN, SAMPLE, documents_of
from specrag.pipelines.base import Pipeline, Request
from specrag.recording import Recording
from specrag.sample import ensure_sample
from specrag.terminal import say
from specrag.tracing.codec import to_dict
from specrag.tracing.store import TraceStore
from specrag.tracing.trace import Trace, fold
from specrag.types import Decision, DecisionMode, PartitionName, PipelineName, PresetName


def ask(  # noqa: PLR0917 - typer passes every one by name
    question: Annotated[str, typer.Argument(help="The question.")],
    docs: Annotated[
        list[Path] | None,
        typer.Option(
            "--docs", help="Files, archives or folders to read for this question only; takes several."
        ),
    ] = None,
    password: Password = None,
    collection: Annotated[
        str | None,
        typer.Option(
            help="Collection to ask, by name or title; else your documents, or the sample if there are none."
        ),
    ] = None,
    documents: Annotated[
        list[str] | None,
        typer.Option("--documents", help="Ids of the documents to look in; takes several."),
    ] = None,
    earlier: Annotated[
        list[str] | None,
        typer.Option(
            "--earlier", help="Ids of the kept runs that this goes on, oldest first; takes several."
        ),
    ] = None,
    pipeline: Annotated[PipelineName, typer.Option(help="Way to the answer.")] = "speculative",
    drafts: Annotated[int | None, typer.Option(help="m: number of drafts.")] = None,
    retrieve: Annotated[int | None, typer.Option(help="K: passages to retrieve.")] = None,
    partition: Annotated[PartitionName | None, typer.Option(help="How passages are divided.")] = None,
    decision: Annotated[
        DecisionMode | None, typer.Option(help="The best draft is the answer, or one is written from all.")
    ] = None,
    preset: Annotated[PresetName | None, typer.Option(help="Weights of the scores.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the partition.")] = None,
    focus: Annotated[
        int | None, typer.Option(help="Sentences that a draft reads of its passages; 0 reads all.")
    ] = None,
    grounded: Annotated[
        bool | None, typer.Option("--grounded", help="Also score the drafts with their passages.")
    ] = None,
    eager: Annotated[
        bool | None, typer.Option("--eager", help="Verify each draft when it is finished.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Ask a question and see how the answer came about."""
    with friendly():
        with told_parts(
            in_memory=bool(docs),
            drafts=drafts,
            retrieve=retrieve,
            partition=partition,
            decision=decision,
            preset=preset,
            seed=seed,
            focus_sentences=focus,
            grounded=grounded,
            eager=eager,
        ) as (made, tell):
            told = conversation([made.traces.load(run_id) for run_id in earlier or ()])
            where = _read(made, tell, docs, password) if docs else _collection(made, collection)
            request = Request(
                question=question,
                collection=where,
                documents=_known(made, where, documents),
                earlier=told,
            )
            trace = asyncio.run(
                run_and_keep(
                    made.pipeline(pipeline),
                    request,
                    lambda: made.traces,
                    deadline_s=made.settings.deadline_s,
                    kept=made.send,
                    quiet=as_json,
                )
            )
        if as_json:
            print_json(to_dict(trace))
        else:
            _print(trace)
        if trace.error is not None:
            say(f"Error: {trace.error.message}")
            raise typer.Exit(FAILURE)


def _read(made: Parts, tell: Tell, docs: Sequence[Path], password: str | None) -> str:
    """Index the files for this question only; returns the name of their collection."""
    name = f"ask-{uuid.uuid4().hex[:12]}"
    files = files_of(list(docs))
    results = [result for path in files for result in taken(made, tell, path, name, password=password)]
    failed = [result for result in results if result.status == "failed"]
    for result in failed:
        say(f"Not read: {result.error}")
    if len(failed) == len(results):
        raise DocumentError("no_text", "None of the files could be read, so there is nothing to ask.")
    return name


def _collection(made: Parts, wanted: str | None) -> str:
    if wanted is not None and (name := shelves(made).find(OPERATOR, wanted)) != SAMPLE:
        return name
    if wanted is None and documents_of(made.store, OWN):
        return OWN
    ensure_sample(made.indexer)
    if wanted is None:
        say("No documents yet, so the sample is asked; add your own with --docs or `specrag ingest`.")
    return SAMPLE


def _known(made: Parts, collection: str, documents: Sequence[str] | None) -> tuple[str, ...]:
    """The documents to look in.

    Raises:
        StoreError: one is not in the collection.
    """
    return tuple(made.store.document(collection, item).id for item in documents or ())


async def run_and_keep(
    pipeline: Pipeline,
    request: Request,
    traces: Callable[[], TraceStore],
    *,
    deadline_s: float,
    kept: Callable[[Trace, Sequence[Event]], None] = lambda _trace, _events: None,
    quiet: bool = False,
) -> Trace:
    """Run to the end and keep the run, one that Ctrl-C ends as well; `traces` is opened only then.

    `kept` is told of a run that was kept.
    """
    log = Recording()
    tell = (lambda _: None) if quiet else Teller()
    try:
        await log.record(pipeline, request, deadline_s=deadline_s, tell=tell)
    except asyncio.CancelledError:
        log.cancel("Stopped in the terminal.")
        if log.events:
            say(f"The run ends here and is kept: specrag trace show {request.run_id}")
        raise
    finally:
        if log.complete:
            _keep(log, traces, kept)
    return fold(log.events)


def _keep(
    log: Recording, traces: Callable[[], TraceStore], kept: Callable[[Trace, Sequence[Event]], None]
) -> None:
    trace = fold(log.events)
    try:
        traces().save(trace, log.events)
    except TraceError as error:  # the answer is worth more than its trace
        say(f"The run was not kept: {error}")
    else:
        kept(trace, log.events)


class Teller:
    """Tells a person how a run goes on. A decision that comes again is told only as far as it is news."""

    def __init__(self) -> None:
        self._told = Decision(kind="direct", draft_index=None, reason="")

    def __call__(self, event: Event) -> None:
        """Say on stderr what is news to a person."""
        if isinstance(event, Decided):
            self._decided(event.decision)
        else:
            _tell(event)

    def _decided(self, decision: Decision) -> None:
        told, self._told = self._told, decision
        news = " ".join(decision.reason.replace(told.reason, "", 1).split())
        if news:
            say(news)
        if decision.conflict and decision.conflict != told.conflict:
            say(f"Disputed: {decision.conflict}")


def _tell(event: Event) -> None:
    match event:
        case QuestionRewritten():
            say(f"asked as: {event.question}")
        case PassagesRetrieved():
            best = max((passage.score for passage in event.passages), default=0)
            say(f"{len(event.passages)} passages, the best scores {best:.2f}")
            if event.note:
                say(event.note)
        case SubsetsFormed():
            say(f"{len(event.subsets)} subsets" + (f"; {event.note}" if event.note else ""))
        case HopStarted():
            say(f"hop {event.number}: {event.query}")
        case HopFinished():
            say(f"  note: {event.hop.note or 'nothing'}")
        case DraftFinished():
            say(f"  draft {event.draft.subset_id[1:]}: {event.draft.answer or event.draft.error}")
        case DraftsVerified() if event.verdicts and event.verdicts[0].scores.combined is None:
            one = event.verdicts[0].subset_id[1:] if len(event.verdicts) == 1 else ""
            say(f"draft {one} verified" if one else f"{len(event.verdicts)} drafts verified in one pass")
        case _:
            pass


def _print(trace: Trace) -> None:
    if trace.answer is None:
        return
    typer.echo(trace.answer.text)
    for passage_id in trace.answer.citations:
        passage = trace.passage(passage_id)
        if passage is not None:
            page = f", page {passage.page}" if passage.page else ""
            typer.echo(f"  from {passage.title} ({passage.source}{page})")
    say(f"{trace.elapsed_ms / 1000:.1f} s, run {trace.run_id}: specrag trace show {trace.run_id}")
