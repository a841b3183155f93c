"""What the search by words costs: processor time and memory of its index at several sizes.

    python scripts/bench_bm25.py [--sizes 10000,100000]

The text is made up: chunks of 100 words drawn from a Zipf vocabulary of 200,000, 20 chunks to a document.
Markdown goes to stdout. A size that is measured after another one finds memory that the other has left.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.figures import spread  # noqa: E402 - the checkout is not installed
from specrag.retrieval.bm25 import Bm25  # noqa: E402
from specrag.types import Chunk  # noqa: E402

WORDS, VOCABULARY, DOCUMENT, QUESTIONS = 100, 200_000, 20, 50


class Made:
    """A store of documents that are made up when they are read, the same ones each time."""

    def __init__(self, documents: int) -> None:
        self.documents = documents
        shares = 1 / np.arange(1, VOCABULARY + 1)
        self._sums = np.cumsum(shares / shares.sum())

    def editions(self, collection: str) -> dict[str, str]:
        """Of all documents."""
        return {f"{collection}{number:07d}": "1" for number in range(self.documents)}

    def chunks(self, collection: str, document_id: str) -> list[Chunk]:
        """Of one document."""
        seed = int(document_id.removeprefix(collection))
        return [
            Chunk(
                id=f"{document_id}-{number:05d}",
                document_id=document_id,
                title="",
                source="",
                text=self.text(seed * DOCUMENT + number),
                position=number,
            )
            for number in range(DOCUMENT)
        ]

    def text(self, seed: int, words: int = WORDS) -> str:
        """Words of which the n-th is n times as rare as the first."""
        drawn = np.searchsorted(self._sums, np.random.default_rng(seed).random(words))
        return " ".join(f"q{_letters(int(number))}" for number in drawn)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000", help="numbers of chunks")
    print("| chunks | first question, s | after one more document, s | a question, ms | memory, MB |")
    print("|---" * 5 + "|")
    for size in map(int, parser.parse_args().sizes.split(",")):
        store = Made(size // DOCUMENT)
        search, before = Bm25(store), _memory()
        first = _seconds(search, store.text(0, 10))
        memory = _memory() - before
        store.documents += 1
        more = _seconds(search, store.text(0, 10))
        times = [_seconds(search, store.text(seed, 10)) * 1000 for seed in range(QUESTIONS)]
        asked = spread(times)
        cells = (f"{size:,}", f"{first:.1f}", f"{more:.2f}", f"{asked['median']:.1f}", f"{memory:.0f}")
        print(f"| {' | '.join(cells)} |")


def _seconds(search: Bm25, question: str) -> float:
    begin = time.process_time()
    search.search("made", question, 50)
    return time.process_time() - begin


def _memory() -> float:
    """Megabytes that this process holds."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * 4096 / 1e6


def _letters(number: int) -> str:
    """The number in letters: digits would be read as a code."""
    letters = ""
    while number or not letters:
        number, digit = divmod(number, 26)
        letters += chr(ord("a") + digit)
    return letters


if __name__ == "__main__":
    main()
