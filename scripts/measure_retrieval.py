"""How much of the evidence is found: by vectors, by words, and by both, on development questions.

    python scripts/measure_retrieval.py --data ../shared/data/qa [--cache DIR] [--sets NAME,NAME]

Every passage is a document of one chunk and goes through the real search: what the embedder and BM25 read of
it, the fusion, and the near-duplicates. Twice: among the passages that a question comes with, and among all
passages of its file. Recall@k is the share of the gold passages among the first k, averaged over questions.
Then: what title and fusion bring, and how often a question is told that hardly anything matches, asked to its
own file and to the files of other sets. Markdown goes to stdout, progress to stderr.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.figures import say  # noqa: E402 - the checkout is not installed
from specrag.build import Parts  # noqa: E402
from specrag.config import Settings, load_settings  # noqa: E402
from specrag.ingest.chunks.searchable import searchable  # noqa: E402
from specrag.retrieval.base import Embedder, Vectors, VectorStore  # noqa: E402
from specrag.retrieval.bm25 import Bm25  # noqa: E402
from specrag.retrieval.candidates import Candidates  # noqa: E402
from specrag.retrieval.fusion import Ranking, fuse  # noqa: E402
from specrag.retrieval.records import to_passage  # noqa: E402
from specrag.retrieval.retriever import Retriever  # noqa: E402
from specrag.types import Chunk, Passage, SearchName  # noqa: E402

SETS = {
    "hotpotqa": ("hotpotqa_distractor", ".43/.66/.77/.86"),
    "musique": ("musique", ".33/.46/.51/.58"),
    "nq": ("nq_bm25_distractors", ".58/.68/.74/.82"),
    "clapnq": ("clapnq_longform_unanswerable", ".64/.79/.87/1"),
    "xquad": ("xquad_multilingual", ".68/.76/.82/.91"),
    "fm2": ("fm2_fact_verification", ".20/.40/.53/.66"),
    "ramdocs": ("ramdocs_conflicts", ".28/.51/.68/.88"),
}
"""File, and the floor of its makers: recall of their BM25 at 1/2/3/5 within the passages of a question."""
MODES: tuple[SearchName, ...] = ("dense", "bm25", "hybrid")
OPEN = (2, 5, 8)
WITHIN = (1, 2, 3, 5)
K = 8


@dataclass(frozen=True)
class Question:
    """A question with its gold passages, as ids of chunks."""

    text: str
    given: tuple[str, ...]
    gold: frozenset[str]
    group: str


@dataclass(frozen=True)
class Corpus:
    """The passages of a file, each once, and the questions that have gold among them."""

    name: str
    chunks: dict[str, Chunk]
    questions: tuple[Question, ...]


class Cached:
    """The real embedder, with what it has embedded before on disk."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self._embedder = embedder
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.fingerprint, self.dimension = embedder.fingerprint, embedder.dimension
        self.window, self.tokenizer_file = embedder.window, embedder.tokenizer_file
        self._known: dict[str, Vectors] = {}

    def learn(self, texts: Sequence[str]) -> None:
        """Embed many texts at once."""
        key = hashlib.sha256("\0".join([self.fingerprint, *texts]).encode("utf-8", "replace")).hexdigest()
        file = self._folder / f"{key[:24]}.npy"
        if not file.exists():
            say(f"embedding {len(texts)} texts")
            np.save(file, self._embedder.embed(texts))
        self._known.update(zip(texts, np.load(file), strict=True))

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`; only what was learnt."""
        return np.stack([self._known[text] for text in texts])


class Shelf:
    """Collections in memory, compared exactly; as much of a store as a search needs."""

    def __init__(self, embedder: Cached, read: Callable[[Chunk], str]) -> None:
        self._embedder = embedder
        self._read = read
        self._collections: dict[str, dict[str, Chunk]] = {}

    def put(self, name: str, chunks: dict[str, Chunk]) -> None:
        """Add or replace a collection."""
        self._collections[name] = chunks

    def check(self, name: str, fingerprint: str) -> None:
        """See `VectorStore.check`."""

    def editions(self, collection: str) -> dict[str, str]:
        """See `VectorStore.editions`."""
        return dict.fromkeys(self._collections[collection], "1")

    def chunks(self, collection: str, document_id: str) -> list[Chunk]:
        """See `VectorStore.chunks`; BM25 reads the text of a chunk as this measurement does."""
        chunk = self._collections[collection][document_id]
        return [chunk if self._read is searchable else replace(chunk, title="")]

    def lookup(self, collection: str, chunk_ids: Sequence[str]) -> dict[str, Chunk]:
        """See `VectorStore.lookup`."""
        return {chunk_id: self._collections[collection][chunk_id] for chunk_id in chunk_ids}

    def vectors(self, collection: str, chunk_ids: Sequence[str]) -> Vectors:
        """See `VectorStore.vectors`."""
        chunks = self._collections[collection]
        return self._embedder.embed([self._read(chunks[chunk_id]) for chunk_id in chunk_ids])

    def query(
        self, collection: str, vector: Vectors, k: int, documents: Collection[str] | None = None
    ) -> list[Passage]:
        """See `VectorStore.query`."""
        ids = [one for one in self._collections[collection] if documents is None or one in documents]
        near = self.vectors(collection, ids) @ vector
        best = np.argsort(-near, kind="stable")[:k].tolist()
        return [to_passage(self._collections[collection][ids[at]], float(near[at])) for at in best]


def main() -> None:
    """Measure and print."""
    options = _options()
    parts = Parts(load_settings(threads=1))
    embedder = Cached(parts.embedder, options.cache)
    corpora = [_read(options.data, name) for name in options.sets.split(",")]
    for corpus in corpora:
        embedder.learn([question.text for question in corpus.questions])
        embedder.learn([searchable(chunk) for chunk in corpus.chunks.values()])
    names = ("bm25s", "PyStemmer", "sentence-transformers", "numpy")
    print(f"Embedder {embedder.fingerprint}; " + ", ".join(f"{one} {version(one)}" for one in names) + ".\n")
    bench = Bench(embedder, searchable)
    bench.tables(corpora)
    bench.weak(corpora)
    for corpus in corpora:
        embedder.learn([chunk.text for chunk in corpus.chunks.values()])
    _titles(bench, Bench(embedder, _text_only), corpora)


class Bench:
    """The real search over the shelf."""

    def __init__(self, embedder: Cached, read: Callable[[Chunk], str]) -> None:
        self._embedder = embedder
        self._shelf = Shelf(embedder, read)
        # the shelf has what a search needs and no more
        self._store = cast("VectorStore", self._shelf)
        self._bm25 = Bm25(self._store)
        self._settings = load_settings({})
        self._retriever = Retriever(self._store, cast("Embedder", embedder), bm25=self._bm25)

    def candidates(self, question: Question, where: str, mode: SearchName) -> Candidates:
        """What is put forward for a question."""
        settings: Settings = self._settings.model_copy(update={"search": mode})
        vector = self._embedder.embed([question.text])[0]
        return self._retriever.candidates(vector, where, K, question=question.text, settings=settings)

    def found(self, question: Question, where: str, mode: SearchName) -> list[str]:
        """The ids of the passages, best first."""
        chosen = self._retriever.choose(self.candidates(question, where, mode), K)
        return [passage.id for passage in chosen.passages]

    def recall(self, corpus: Corpus, mode: SearchName, *, within: bool) -> dict[Question, list[float]]:
        """Of each question, recall at each k."""
        self._shelf.put(corpus.name, corpus.chunks)
        values = {}
        for number, question in enumerate(corpus.questions):
            where = corpus.name
            if within:
                where = f"{corpus.name}-{number}"
                self._shelf.put(where, {one: corpus.chunks[one] for one in question.given})
            found = self.found(question, where, mode)
            values[question] = [_share(found[:k], question.gold) for k in (WITHIN if within else OPEN)]
        return values

    def tables(self, corpora: Sequence[Corpus]) -> None:
        """Recall of the three ways of searching."""
        for within, ks in ((True, WITHIN), (False, OPEN)):
            what = "/".join(map(str, ks))
            print(
                f"**{'Among the passages of the question' if within else 'Among all passages of the file'}**"
            )
            print(f"(recall of gold at {what})\n")
            floor = " | floor" if within else ""
            print(f"| set | n{'' if within else ' | passages'} | dense | bm25 | hybrid{floor} |")
            print("|---" * 6 + "|")
            for corpus in corpora:
                say(f"{corpus.name}, {'within' if within else 'open'}")
                values = {mode: self.recall(corpus, mode, within=within) for mode in MODES}
                for group, asked in _groups(corpus):
                    means = [np.mean([values[mode][one] for one in asked], axis=0) for mode in MODES]
                    middle = "" if within else f" | {len(corpus.chunks)}"
                    end = f" | {SETS[corpus.name][1] if group == corpus.name else ''}" if within else ""
                    cells = " | ".join(_figures(mean) for mean in means)
                    print(f"| {group} | {len(asked)}{middle} | {cells}{end} |")
            print()

    def weak(self, corpora: Sequence[Corpus]) -> None:
        """How often a question is told that hardly anything matches."""
        print("**Called weak** (share of the questions, hybrid)\n")
        print("| questions | own file | other files |\n|---|---|---|")
        for corpus in corpora:
            self._shelf.put(corpus.name, corpus.chunks)
        totals: list[tuple[list[bool], list[bool]]] = []
        for corpus in corpora:
            say(f"{corpus.name}, weak")
            for group, asked in _groups(corpus):
                own = [self._is_weak(one, corpus.name) for one in asked]
                others = [self._is_weak(one, o.name) for one in asked for o in corpora if o is not corpus]
                print(f"| {group} | {np.mean(own):.1%} | {np.mean(others or [False]):.1%} |")
                if group == corpus.name:
                    totals.append((own, others))
        own, others = ([value for pair in totals for value in pair[side]] for side in (0, 1))
        print(f"| all | {np.mean(own):.1%} | {np.mean(others or [False]):.1%} |\n")

    def _is_weak(self, question: Question, where: str) -> bool:
        note = self._retriever.choose(self.candidates(question, where, "hybrid"), K).note
        return (note or "").startswith("The documents hardly match")

    def ways(self, corpus: Corpus) -> dict[str, float]:
        """Mean recall over the three k, among all passages, of each way to one order."""
        self._shelf.put(corpus.name, corpus.chunks)
        sums: dict[str, list[float]] = {}
        for question in corpus.questions:
            candidates = self.candidates(question, corpus.name, "hybrid")
            for way, found in _orders(candidates):
                recall = [_share(found[:k], question.gold) for k in OPEN]
                sums.setdefault(way, []).append(float(np.mean(recall)))
        return {way: float(np.mean(values)) for way, values in sums.items()}


def _orders(candidates: Candidates) -> Iterator[tuple[str, list[str]]]:
    """The same candidates in the order of each way, near-duplicates included."""
    passages = candidates.passages
    dense = [one.id for one in sorted(passages, key=lambda one: one.dense_rank or 0)]
    words = [one for one in passages if one.bm25_rank]
    by_words = [one.id for one in sorted(words, key=lambda one: one.bm25_rank or 0)]
    trust = candidates.readable**2
    yield "dense", dense
    yield "bm25", by_words
    yield "RRF", fuse([Ranking(ids=dense), Ranking(ids=by_words)])
    yield "RRF, readable", fuse([Ranking(ids=dense, weight=trust), Ranking(ids=by_words)])
    yield "hybrid", [one.id for one in passages]


def _titles(with_title: Bench, without: Bench, corpora: Sequence[Corpus]) -> None:
    print("**What title and fusion bring** (mean of recall at 2, 5 and 8 among all passages of the file)\n")
    ways = ("dense", "bm25", "RRF", "RRF, readable", "hybrid")
    bare = ("dense", "bm25", "hybrid")
    print("| set | " + " | ".join(ways) + " | " + " | ".join(f"{way}, no title" for way in bare) + " |")
    print("|---" * (1 + len(ways) + len(bare)) + "|")
    rows = []
    for corpus in corpora:
        say(f"{corpus.name}, ways")
        titled, plain = with_title.ways(corpus), without.ways(corpus)
        rows.append([*(titled[way] for way in ways), *(plain[way] for way in bare)])
        print(f"| {corpus.name} | {' | '.join(f'{value:.3f}' for value in rows[-1])} |")
    print(f"| mean of sets | {' | '.join(f'{value:.3f}' for value in np.mean(rows, axis=0))} |")


def _groups(corpus: Corpus) -> Iterator[tuple[str, list[Question]]]:
    """The whole set, and its parts where it has several."""
    yield corpus.name, list(corpus.questions)
    groups = sorted({one.group for one in corpus.questions})
    for group in groups if len(groups) > 1 else ():
        yield group, [one for one in corpus.questions if one.group == group]


def _read(folder: Path, name: str) -> Corpus:
    lines = (folder / f"{SETS[name][0]}.dev.jsonl").read_text(encoding="utf-8").splitlines()
    chunks: dict[str, Chunk] = {}
    ids: dict[tuple[str, str], str] = {}
    questions = []
    for row in map(json.loads, lines):
        for one in row["passages"]:
            key = one["title"], one["text"]
            if key not in ids:
                ids[key] = f"{name}-{len(ids):05d}"
                chunks[ids[key]] = _chunk(ids[key], *key)
        gold = frozenset(ids[one["title"], one["text"]] for one in row["passages"] if one["is_gold"])
        if gold and row["answers"]:
            given = tuple(dict.fromkeys(ids[one["title"], one["text"]] for one in row["passages"]))
            group = _language(row["meta"]) if name == "xquad" else ""
            questions.append(Question(text=row["question"], given=given, gold=gold, group=group))
    return Corpus(name, chunks, tuple(questions))


def _chunk(identity: str, title: str, text: str) -> Chunk:
    return Chunk(id=identity, document_id=identity, title=title, source=title, text=text, position=0)


def _language(meta: dict[str, Any]) -> str:
    asked, read = meta["question_lang"], meta["passage_lang"]
    return f"xquad {asked}" if asked == read else "xquad cross-lingual"


def _text_only(chunk: Chunk) -> str:
    return chunk.text


def _share(found: Sequence[str], gold: frozenset[str]) -> float:
    return len(gold & set(found)) / len(gold)


def _figures(values: Sequence[float]) -> str:
    return "/".join(f"{value:.2f}".removeprefix("0") for value in values)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the NAME.dev.jsonl files")
    parser.add_argument("--cache", type=Path, default=Path("/tmp/specrag-vectors"))  # noqa: S108 - a cache
    parser.add_argument("--sets", default=",".join(SETS))
    return parser.parse_args()


if __name__ == "__main__":
    main()
