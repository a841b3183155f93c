"""Files of questions: every form is read, a wrong line is named, and the right answer stays out of sight."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specrag.evaluation.converters import FORMATS, Format
from specrag.evaluation.datasets import read_questions
from specrag.evaluation.problems import EvaluationError
from specrag.evaluation.questions import Question

ROW = {
    "id": "q1",
    "question": "How heavy is the battery?",
    "answers": ["3.4 kg"],
    "passages": [
        {"id": "right-one", "title": "Battery", "text": "It weighs 3.4 kg.", "is_gold": True,
         "doc_type": "correct", "doc_answer": "3.4 kg", "source": "gold.pdf"},
        {"id": "x", "title": "Bell", "text": "The bell is small.", "is_gold": False},
    ],
}  # fmt: skip


def written(folder: Path, *rows: Any, name: str = "bikes.dev.jsonl") -> Path:
    path = folder / name
    lines = (row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def only(folder: Path, row: Any, form: Format | None = None) -> Question:
    (question,) = read_questions(written(folder, row), form).questions
    return question


def test_a_system_sees_neither_labels_nor_ids_of_the_file(tmp_path: Path) -> None:
    """An id like "right-one", a label or a source of the file would tell a system where to look."""
    question = only(tmp_path, ROW)
    told = json.dumps([[one.id, one.title, one.text] for one in question.passages])
    for secret in ("right-one", "correct", "gold", "is_gold", "doc_answer"):
        assert secret not in told
    assert question.gold == {question.passages[0].id}
    assert not hasattr(question.passages[0], "is_gold")


def test_name_and_counts_of_a_file(tmp_path: Path) -> None:
    """A question without passages cannot be asked, which the report has to say."""
    found = read_questions(written(tmp_path, ROW, "", {**ROW, "id": 2, "passages": []}))
    assert found.form == "specrag"
    assert (found.name, len(found.questions), found.left_out) == ("bikes", 1, 1)


@pytest.mark.parametrize(
    ("answers", "task", "kind"),
    [
        ([], "", "unanswerable"),
        (["true"], "", "yes-no"),
        (["No", "false"], "", "yes-no"),
        (["no one"], "", "short"),
        (["42"], "long_form_qa", "long"),
        ([" ".join(["word"] * 20)], "", "long"),
    ],
)
def test_the_kind_of_a_question(tmp_path: Path, answers: list[str], task: str, kind: str) -> None:
    assert only(tmp_path, {**ROW, "answers": answers, "task": task}).kind == kind


def test_a_claim_is_asked_for_its_truth(tmp_path: Path) -> None:
    """A model that is only shown a claim goes on telling, and never says whether it holds."""
    claim = {**ROW, "question": "The battery is heavy.", "answers": ["false"], "task": "fact_verification"}
    assert only(tmp_path, claim).asked == "Is this claim true or false? The battery is heavy."
    assert only(tmp_path, ROW).asked == ROW["question"]


def test_the_conversation_before_and_all_answers(tmp_path: Path) -> None:
    turns = [
        {"role": "user", "text": "What is it?"},
        {"role": "assistant", "text": "A bike."},
        {"role": "user", "text": "Again?"},
    ]
    question = only(tmp_path, {**ROW, "meta": {"history": turns, "all_answers_required": True}})
    assert [(one.question, one.answer) for one in question.earlier] == [("What is it?", "A bike.")]
    assert question.all_required


def test_hotpotqa(tmp_path: Path) -> None:
    """Both as a JSON list of rows and with the columns of the Hugging Face form."""
    row = {
        "_id": "h1", "question": "Who built the bridge?", "answer": "Ada", "type": "bridge",
        "context": [["Bridge", ["The bridge is old.", " Ada built it."]], ["Cafe", ["Soup."]]],
        "supporting_facts": [["Bridge", 1]],
    }  # fmt: skip
    columns = {
        **row,
        "context": {
            "title": ["Bridge", "Cafe"],
            "sentences": [["The bridge is old.", " Ada built it."], ["Soup."]],
        },
        "supporting_facts": {"title": ["Bridge"], "sent_id": [1]},
    }
    path = tmp_path / "hotpot.json"
    path.write_text(json.dumps([row]))
    (listed,) = read_questions(path).questions
    assert listed == only(tmp_path, columns)
    assert [one.text for one in listed.passages] == ["The bridge is old. Ada built it.", "Soup."]
    assert (listed.answers, listed.task, len(listed.gold)) == (("Ada",), "multihop_qa", 1)
    assert listed.gold == {listed.passages[0].id}


def test_nq_with_the_lists_of_a_retriever(tmp_path: Path) -> None:
    row = {
        "question": "who wrote it", "answers": ["Ada", "A. Brennick"],
        "positive_ctxs": [{"title": "Book", "text": "Ada wrote it."}],
        "negative_ctxs": [{"title": "Tea", "text": "Tea."}], "hard_negative_ctxs": [{"title": "B", "text": "Bo."}],
    }  # fmt: skip
    question = only(tmp_path, row)
    assert (question.id, len(question.passages)) == ("who wrote it", 3)
    assert question.gold == {question.passages[0].id}
    marked = [{"title": "", "text": "Tea."}, {"title": "", "text": "Ada did.", "has_answer": True}]
    asked = only(tmp_path, {"question": "who", "answer": "Ada", "ctxs": marked})
    assert asked.answers == ("Ada",)
    assert asked.gold == {asked.passages[1].id}


@pytest.mark.parametrize(
    ("label", "answers", "gold"),
    [("SUPPORTS", ("true",), 2), ("REFUTES", ("false",), 2), ("NOT ENOUGH INFO", (), 0)],
)
def test_fever(tmp_path: Path, label: str, answers: tuple[str, ...], gold: int) -> None:
    row = {"id": 7, "claim": "It is blue.", "label": label, "evidence": ["It is red.", ["Page", 3, "Red."]]}
    question = only(tmp_path, row)
    assert (question.id, question.answers, len(question.gold)) == ("7", answers, gold)
    assert question.asked.startswith("Is this claim true or false?")


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ('{"id": "q2"', "line 2: it is not JSON"),
        ("[" * 100_000, "line 2: it is not JSON: it is nested too deeply"),
        ("7", "line 2: it is not an object"),
        ({**ROW, "id": "q1"}, "line 2: the id “q1” stands in an earlier line"),
        ({**ROW, "id": "q2", "question": " "}, "line 2: “question” is missing or empty"),
        ({**ROW, "id": None}, "line 2: “id” is missing"),
        ({**ROW, "id": "q2", "question": ["?"]}, "line 2: “question” is not a text"),
        ({**ROW, "id": "q2", "answers": "3.4"}, "line 2: “answers” is missing or not a list"),
        ({**ROW, "id": "q2", "answers": [True]}, "line 2, answer 1 is not a text"),
        ({**ROW, "id": "q2", "passages": [{"title": "x"}]}, "line 2, passage 1: “text” is missing"),
        ({**ROW, "id": "q2", "passages": ["x"]}, "line 2, passage 1: it is not an object"),
        ({**ROW, "id": "q2", "passages": [{"text": "y" * 100_001}]}, "at most 100,000 are read"),
        ({**ROW, "id": "q2", "passages": [{"text": str(n)} for n in range(1001)]}, "at most 1,000 are read"),
        ({**ROW, "id": "q2", "meta": {"history": "x"}}, "line 2: “history” is not a list of turns"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, row: Any, says: str) -> None:
    """A KeyError after an hour of computing helps nobody."""
    with pytest.raises(EvaluationError, match=r"bikes\.dev\.jsonl, line 2") as refused:
        read_questions(written(tmp_path, ROW, row))
    assert says in str(refused.value)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    broken = tmp_path / "latin.jsonl"
    broken.write_bytes(b'{"id": "a"}\n{"id": "\xe9"}')
    for path, says in [
        (tmp_path / "none.jsonl", "none.jsonl cannot be read: No such file"),
        (tmp_path, "cannot be read"),
        (broken, "latin.jsonl, line 2: it is not UTF-8"),
        (written(tmp_path, name="empty.jsonl"), "empty.jsonl holds no question with passages"),
        (
            written(tmp_path, {"text": "?"}, name="other.jsonl"),
            "its form is not known; name one with --format",
        ),
    ]:
        with pytest.raises(EvaluationError) as refused:
            read_questions(path)
        assert says in str(refused.value)


def test_evidence_that_is_only_numbers_is_refused(tmp_path: Path) -> None:
    """FEVER's own file names sentences of a Wikipedia dump that is not in it."""
    row = {"id": 1, "claim": "It is.", "label": "SUPPORTS", "evidence": [[[1, 2, "Page", 0]]]}
    with pytest.raises(EvaluationError, match="holds no text"):
        read_questions(written(tmp_path, row))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["id", "question", "answer", "answers", "passages", "context", "supporting_facts", "claim", "label",
     "evidence", "ctxs", "positive_ctxs", "meta", "history", "title", "text"]
)  # fmt: skip


@settings(deadline=None)  # it writes a file
@given(row=st.dictionaries(NAMES, JSON, max_size=8), form=st.sampled_from(FORMATS))
def test_no_row_is_a_crash(
    tmp_path_factory: pytest.TempPathFactory, row: dict[str, Any], form: Format
) -> None:
    """Whatever stands in a file, it is read or refused with a sentence that names its line."""
    path = written(tmp_path_factory.getbasetemp(), row, name="any.jsonl")
    refused = ""
    try:
        assert read_questions(path, form).questions
    except EvaluationError as error:
        refused = str(error)
    assert not refused or refused.startswith("any.jsonl")
