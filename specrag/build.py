"""The composition root: the only file that knows which concrete class plays which part.

Parts are made when they are first asked for, so that a command that only lists documents never loads a
language model. One `Parts` belongs to one process.
"""

import platform
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specrag import __version__
from specrag.comparing import Comparisons
from specrag.config import Settings, model_name
from specrag.events import Event
from specrag.ingest.chunks.chunking import Chunker
from specrag.ingest.index import Indexer
from specrag.ingest.jobs.jobs import IngestJobs
from specrag.ingest.jobs.reindex import ReindexJobs
from specrag.ingest.originals import Originals
from specrag.ingest.process.reading import ReadingProcess
from specrag.library.library import Library
from specrag.models.base import LanguageModel
from specrag.models.local import LocalModel
from specrag.models.server.access import access_of
from specrag.models.server.model import ServerModel
from specrag.models.weights import Progress, Weights, ignore
from specrag.models.worker import Worker
from specrag.partition import Partitioner
from specrag.pipelines.base import Pipeline, Tools
from specrag.pipelines.drafter_only import DrafterOnlyPipeline
from specrag.pipelines.multihop import MultiHopPipeline
from specrag.pipelines.speculative import SpeculativePipeline
from specrag.pipelines.standard import StandardPipeline
from specrag.retrieval.address import server_of
from specrag.retrieval.base import Embedder, VectorStore
from specrag.retrieval.bm25 import Bm25
from specrag.retrieval.chroma import ChromaStore
from specrag.retrieval.embedder import SentenceEmbedder
from specrag.retrieval.evidence import EvidenceScorer
from specrag.retrieval.rerank import CrossEncoderReranker, Reranker
from specrag.retrieval.retriever import Retriever
from specrag.runs import Runs
from specrag.tracing.comparisons import ComparisonStore
from specrag.tracing.history import History
from specrag.tracing.live_export import LiveExport, live_export_of
from specrag.tracing.store import TraceStore
from specrag.tracing.trace import Trace
from specrag.turnstile import Turnstile
from specrag.types import ModelInfo, PipelineName, Role
from specrag.viewer import Viewer

if TYPE_CHECKING:
    from specrag.evaluation.shelf import Shelf
    from specrag.evaluation.trials import Trials

PIPELINES: dict[PipelineName, Callable[[Tools], Pipeline]] = {
    "speculative": SpeculativePipeline,
    "standard": StandardPipeline,
    "drafter": DrafterOnlyPipeline,
    "multihop": MultiHopPipeline,
}
_DAY_S = 86_400.0
_CLOSED = (
    *("trials", "live_export", "jobs", "reindexing", "reading", "drafter", "verifier", "worker"),
    "store",  # last: who embeds for it at this moment holds it until the worker is gone
)
PACKAGES = ("gradio", "transformers", "torch", "sentence-transformers", "chromadb", "plotly")


class Parts:
    """Everything that a process may need, made on demand from the settings.

    With `in_memory` the vector store lives and dies with the process and never touches the one on disk. A
    `drafter`, `verifier` or `partitioner` given here takes the place of the one in the settings.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        progress: Callable[[Progress], None] = ignore,
        in_memory: bool = False,
        drafter: LanguageModel | None = None,
        verifier: LanguageModel | None = None,
        partitioner: Partitioner | None = None,
    ) -> None:
        self.settings = settings
        self._progress = progress
        self._in_memory = in_memory
        self._drafter = drafter
        self._verifier = verifier
        self._partitioner = partitioner

    @cached_property
    def weights(self) -> Weights:
        """Where models come from."""
        return Weights(home=self.settings.home, progress=self._progress)

    @cached_property
    def embedder(self) -> Embedder:
        """The embedder."""
        name = self.settings.embedder
        return SentenceEmbedder(
            self.weights.ensure(name),
            name=model_name(name),
            threads=self.settings.threads,
            worker=self.worker,
        )

    @cached_property
    def store(self) -> VectorStore:
        """The vector store: in memory, on the server of the settings, or in their home."""
        if self._in_memory:
            return ChromaStore(None)
        served = bool(self.settings.chroma_url)
        return ChromaStore(server_of(self.settings) if served else self.settings.home / "chroma")

    @cached_property
    def indexer(self) -> Indexer:
        """The only writer of the store."""
        chunker = Chunker(
            self.embedder.tokenizer_file,
            tokens=self.settings.chunk_tokens,
            overlap=self.settings.chunk_overlap,
        )
        return Indexer(
            store=self.store,
            embedder=self.embedder,
            chunker=chunker,
            settings=self.settings,
            reader=self.reading,
            originals=self.originals,
        )

    @cached_property
    def reading(self) -> ReadingProcess:
        """What reads files and draws their pages, in a process of its own."""
        return ReadingProcess(self.settings)

    @cached_property
    def originals(self) -> Originals | None:
        """Where uploaded files are kept; those of another store are none of this one's."""
        if self._in_memory:
            return None
        place = server_of(self.settings).identity if self.settings.chroma_url else "here"
        return Originals(self.settings.home / "originals" / place)

    def sweep_originals(self) -> None:
        """Remove kept files whose documents are gone; only before anything is being added here.

        Where the store is a server's, another program with this home may be adding at this moment.
        """
        if self.originals is not None:
            store, shared = self.store, bool(self.settings.chroma_url)
            known = {name: set(store.editions(name)) for name in store.collections()}
            self.originals.sweep(known, idle_s=_DAY_S if shared else 0.0)

    @cached_property
    def library(self) -> Library:
        """The collections, with the uploads that are under way if the queue has been opened."""
        return Library(
            store=self.store,
            indexer=self.indexer,
            jobs=self.__dict__.get("jobs"),  # who only lists documents must not go on with uploads
            originals=self.originals,
            settings=self.settings,
            dimension=self.embedder.dimension,
            deleted=self.bm25.forget,
        )

    @cached_property
    def viewer(self) -> Viewer:
        """What opens a document at a passage."""
        return Viewer(self.store, self.originals, self.reading)

    @cached_property
    def bm25(self) -> Bm25:
        """The search by words."""
        return Bm25(self.store)

    @cached_property
    def retriever(self) -> Retriever:
        """What finds the passages of a question."""
        return Retriever(
            store=self.store,
            embedder=self.embedder,
            bm25=self.bm25,
            reranker=self.reranker,
            settings=self.settings,
        )

    @cached_property
    def reranker(self) -> Reranker | None:
        """What orders the candidates once more, if the settings name one."""
        name = self.settings.reranker
        if not name:
            return None
        return CrossEncoderReranker(self.weights.ensure(name), name=model_name(name), worker=self.worker)

    @cached_property
    def jobs(self) -> IngestJobs:
        """The queue of uploads."""
        return IngestJobs(self.indexer, staging=self.settings.home / "uploads")

    @cached_property
    def reindexing(self) -> ReindexJobs:
        """The collections that are being indexed anew."""
        return ReindexJobs(self.indexer)

    @cached_property
    def worker(self) -> Worker:
        """The one thread that computes."""
        return Worker()

    @cached_property
    def drafter(self) -> LanguageModel:
        """The small model."""
        return self._drafter or self._made("drafter")

    @cached_property
    def verifier(self) -> LanguageModel:
        """The large model; the drafter itself when both settings are equal."""
        if self._verifier is not None:
            return self._verifier
        if self._drafter is None and self._same_model():
            return self.drafter
        return self._made("verifier")

    @property
    def server_prompts(self) -> int:
        """Prompts that servers work on for this process; 0 means that they are free of us."""
        made = [self.__dict__.get(role) for role in ("drafter", "verifier")]
        return sum(model.running for model in made if isinstance(model, ServerModel))

    @cached_property
    def turnstile(self) -> Turnstile:
        """Where the runs of this process wait for their turn, whichever pipeline they take."""
        return Turnstile(self.settings.concurrent_runs)

    @cached_property
    def tools(self) -> Tools:
        """What all pipelines work with."""
        return Tools(
            retriever=self.retriever,
            evidence=EvidenceScorer(self.embedder),
            drafter=self.drafter,
            verifier=self.verifier,
            settings=self.settings,
            environment=self.environment(),
            partitioner=self._partitioner,
            turnstile=self.turnstile,
        )

    def pipeline(self, name: PipelineName, settings: Settings | None = None) -> Pipeline:
        """A pipeline by its name, made anew and cheaply.

        `settings` are those of one run (drafts, partition, decision, ...); models and store stay those of
        this process.
        """
        settings = settings or self.settings
        drafter, verifier = self._playing(settings.draft_with), self._playing(settings.verify_with)
        # a server may have been replaced by another since the last run
        environment = self.environment(drafter=drafter, verifier=verifier)
        tools = replace(
            self.tools, settings=settings, environment=environment, drafter=drafter, verifier=verifier
        )
        return PIPELINES[name](tools)

    def _playing(self, role: Role) -> LanguageModel:
        """The model that was loaded for a role, whichever part it has in a run."""
        return self.drafter if role == "drafter" else self.verifier

    @property
    def speculative(self) -> Pipeline:
        """The pipeline that this program exists for."""
        return self.pipeline("speculative")

    @cached_property
    def traces(self) -> TraceStore:
        """Where traces are kept."""
        settings = self.settings
        return TraceStore(
            settings.home / "traces.db", max_runs=settings.max_runs, max_imported_mb=settings.max_imported_mb
        )

    @cached_property
    def runs(self) -> Runs:
        """The runs of this process."""
        settings = self.settings
        return Runs(
            self.traces, deadline_s=settings.deadline_s, abandoned_s=settings.abandoned_s, kept=self.send
        )

    @cached_property
    def live_export(self) -> LiveExport | None:
        """What sends kept runs to the collector of the settings, if they name one."""
        return live_export_of(self.settings)

    def send(self, trace: Trace, events: Sequence[Event]) -> None:
        """Hand a run that was kept to the collector of the settings, if they name one."""
        if self.live_export is not None:
            self.live_export.sent(trace, events)

    @cached_property
    def history(self) -> History:
        """The kept runs as visitors may see them."""
        return History(self.traces, self.runs, self.settings)

    @cached_property
    def comparisons(self) -> Comparisons:
        """The comparisons of this process."""
        store = ComparisonStore(self.settings.home / "traces.db", most=self.settings.max_runs)
        return Comparisons(
            store=store, traces=self.traces, runs=self.runs, tools=self.tools, pipeline=self.pipeline
        )

    @cached_property
    def shelf(self) -> "Shelf":
        """The kept reports."""
        from specrag.evaluation.shelf import Shelf

        return Shelf(self.settings.home)

    @cached_property
    def trials(self) -> "Trials":
        """The small evaluations that the page starts."""
        from specrag.evaluation.trials import Trials  # its parts are made from these

        return Trials(self)

    def environment(
        self, *, drafter: LanguageModel | None = None, verifier: LanguageModel | None = None
    ) -> dict[str, Any]:
        """What a trace says about the place where it was made, and of the models of its run."""
        drafter, verifier = drafter or self.drafter, verifier or self.verifier
        return {
            "versions": dict(self._versions),
            "models": {
                role: _described(info)
                for role, info in (("drafter", drafter.info), ("verifier", verifier.info))
            }
            | {
                "embedder": {"name": model_name(self.settings.embedder), "dimension": self.embedder.dimension}
            },
            "device": self._device(),
        }

    @cached_property
    def _versions(self) -> dict[str, str]:
        return {"specrag": __version__, "python": platform.python_version()} | {
            name: version(name) for name in PACKAGES
        }

    def close(self) -> None:
        """Let go of the store's lock and of the threads, of those parts that were made.

        A part that cannot be closed keeps no other from it; its error is raised at the end.
        """
        made = self.__dict__
        with ExitStack() as closing:
            for name in reversed(_CLOSED):
                if name in made and hasattr(made[name], "close"):
                    closing.callback(made[name].close)

    def _device(self) -> str:
        """Where the models are; threads count only for those of this process."""
        infos = (self.drafter.info, self.verifier.info)
        here = f"{self.settings.threads} threads"
        return "; ".join(
            dict.fromkeys(info.device if _served(info) else f"{info.device}, {here}" for info in infos)
        )

    def _same_model(self) -> bool:
        settings = self.settings
        if access_of(settings, "drafter") is None and access_of(settings, "verifier") is None:
            return settings.verifier == settings.drafter
        return False

    def _made(self, role: Role) -> LanguageModel:
        """The model of a role: behind its servers, or loaded here."""
        access = access_of(self.settings, role)
        if access is None:
            return self._load(getattr(self.settings, role))
        self._progress(Progress(step=f"asking the {role}'s server", done=0, total=0))
        tokenizer = self._tokenizer(access.tokenizer) if access.tokenizer else None
        model = ServerModel(access, tokenizer=tokenizer)
        model.connect_now()
        return model

    def _tokenizer(self, name: str) -> Any:
        from specrag.models.loading import load_tokenizer

        return load_tokenizer(self.weights.tokenizer(name), name=model_name(name))

    def _load(self, name: str) -> LocalModel:
        folder: Path = self.weights.ensure(name)
        return LocalModel(
            folder,
            name=model_name(name),
            worker=self.worker,
            threads=self.settings.threads,
            precision=self.settings.precision,
        )


def _described(info: ModelInfo) -> dict[str, Any]:
    """What a trace says of a model; notes and place only of one behind a server."""
    described: dict[str, Any] = {"name": info.name, "parameters": info.parameters, "dtype": info.dtype}
    if _served(info):
        described["server"] = info.device
    return described | ({"notes": list(info.notes)} if info.notes else {})


def _served(info: ModelInfo) -> bool:
    """Whether a model is behind a server, by its device."""
    return info.device.partition(":")[0] not in ("cpu", "cuda", "mps", "none")
