"""The example questions of the sample collection as a small labelled set, over the passages of its pages.

Seven questions are too few to tell pipelines apart; they show what an evaluation looks like.
"""

import hashlib
import json
from typing import Final

from specrag.evaluation.questions import Dataset, Question, seen
from specrag.library.library import SAMPLE
from specrag.retrieval.base import VectorStore
from specrag.sample import FOLDER

NAME: Final = "sample"


def sample_questions(store: VectorStore) -> Dataset:
    """The questions with their accepted answers; each is asked over the whole collection."""
    data = (FOLDER / "questions.json").read_bytes()
    told = json.loads(data)
    chunks = (
        chunk
        for document in sorted(store.documents(SAMPLE), key=lambda one: one.title)
        for chunk in store.chunks(SAMPLE, document.id)
    )
    passages = tuple(seen(chunk.title, chunk.text) for chunk in chunks)
    asked = [*told["questions"], told["unanswerable"]]
    return Dataset(
        name=NAME,
        sha256=hashlib.sha256(data).hexdigest(),
        questions=tuple(
            Question(
                id=f"sample-{number}",
                question=one["question"],
                answers=tuple(one["answers"]),
                passages=passages,
            )
            for number, one in enumerate(asked, 1)
        ),
    )
