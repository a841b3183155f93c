"""Rows of well-known files in the project's own form, recognised by their fields.

HotpotQA tells its evidence by title and sentence, retrievers for NQ by lists of right and wrong passages, and
FEVER by a label. Nothing is made up here: what a row does not hold stays empty, and the reader then says so.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, assert_never, get_args

from specrag.evaluation.problems import EvaluationError

Format: TypeAlias = Literal["specrag", "hotpotqa", "nq", "fever"]
FORMATS: tuple[Format, ...] = get_args(Format)
Row: TypeAlias = Mapping[str, Any]
_LABELS = {"SUPPORTS": "true", "REFUTES": "false"}
_UNDECIDED = "NOT ENOUGH INFO"


def format_of(row: Row) -> Format | None:
    """The form of a file by one of its rows; None if it is none of these."""
    if "passages" in row and "answers" in row:
        return "specrag"
    if "supporting_facts" in row and "context" in row:
        return "hotpotqa"
    if "claim" in row and "label" in row:
        return "fever"
    if "question" in row and ("answer" in row or "answers" in row):
        return "nq"
    return None


def converted(where: str, row: Row, form: Format) -> Row:
    """The row in the project's own form.

    Raises:
        EvaluationError: the row is not of this form.
    """
    match form:
        case "specrag":
            return row
        case "hotpotqa":
            return _hotpotqa(where, row)
        case "nq":
            return _nq(where, row)
        case "fever":
            return _fever(where, row)
        case _:
            assert_never(form)


def _hotpotqa(where: str, row: Row) -> Row:
    """context: [[title, [sentence, ...]], ...]; supporting_facts: [[title, sentence number], ...]."""
    context, facts = row.get("context"), row.get("supporting_facts")
    if isinstance(context, dict):  # as Hugging Face stores it: columns instead of rows
        context = _columns(context, "title", "sentences")
    if isinstance(facts, dict):
        facts = _columns(facts, "title", "sent_id")
    gold = {str(title) for title, _ in _pairs(where, facts, "supporting_facts")}
    passages = [
        {"title": title, "text": _joined(where, sentences), "is_gold": str(title) in gold}
        for title, sentences in _pairs(where, context, "context")
    ]
    return {
        "id": row.get("_id", row.get("id")),
        "question": row.get("question"),
        "answers": [row["answer"]] if "answer" in row else None,
        "passages": passages,
        "task": "multihop_qa",
    }


def _nq(where: str, row: Row) -> Row:
    """A question with its answers, and passages as a retriever lists them."""
    answers = row.get("answers", row.get("answer"))
    right, wrong = _contexts(where, row, "positive_ctxs"), _contexts(where, row, "negative_ctxs")
    wrong += _contexts(where, row, "hard_negative_ctxs")
    found = _contexts(where, row, "ctxs")
    passages = [
        *({**one, "is_gold": True} for one in right),
        *({**one, "is_gold": False} for one in wrong),
        *({**one, "is_gold": _holds_answer(one)} for one in found),
    ]
    return {
        "id": row.get("id", row.get("question")),
        "question": row.get("question"),
        "answers": [answers] if isinstance(answers, str) else answers,
        "passages": [{**one, "text": _said(one)} for one in passages],
        "task": row.get("task", "single_hop_qa"),
    }


def _fever(where: str, row: Row) -> Row:
    """A claim with its label, and evidence as texts or as [page, sentence number, text]."""
    label = str(row.get("label")).upper()
    if label not in _LABELS and label != _UNDECIDED:
        raise EvaluationError(
            f"{where}: “label” is “{label[:40]}”; SUPPORTS, REFUTES or NOT ENOUGH INFO are known."
        )
    undecided = label == _UNDECIDED
    evidence = row.get("passages", row.get("evidence"))
    if not isinstance(evidence, list):
        raise EvaluationError(f"{where}: “evidence” is missing or not a list.")
    return {
        "id": row.get("id", row.get("claim")),
        "question": row.get("claim"),
        "answers": [] if undecided else [_LABELS[label]],
        "passages": [_evidence(where, one, gold=not undecided) for one in evidence],
        "task": "fact_verification",
    }


def _evidence(where: str, one: Any, *, gold: bool) -> Row:
    if isinstance(one, str):
        return {"title": "", "text": one, "is_gold": gold}
    if isinstance(one, dict):
        return {**one, "text": _said(one), "is_gold": one.get("is_gold", gold)}
    if isinstance(one, list) and len(one) >= 2 and isinstance(one[-1], str):  # noqa: PLR2004 - page and text
        return {"title": one[0], "text": one[-1], "is_gold": gold}
    raise EvaluationError(
        f"{where}: “evidence” holds no text; this file needs the sentences of its pages, not their numbers."
    )


def _said(one: Row) -> Any:
    return one.get("text", one.get("context", one.get("sentence")))


def _holds_answer(one: Row) -> bool:
    """Whether a retriever's list marks the passage as one that answers."""
    return next((one[name] is True for name in ("has_answer", "hasanswer", "isgold") if name in one), False)


def _contexts(where: str, row: Row, name: str) -> list[Row]:
    value = row.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise EvaluationError(f"{where}: “{name}” is not a list of passages.")
    return list(value)


def _columns(value: Row, first: str, second: str) -> list[Any] | None:
    left, right = value.get(first), value.get(second)
    if not isinstance(left, list) or not isinstance(right, list) or len(left) != len(right):
        return None
    return [list(pair) for pair in zip(left, right, strict=True)]


def _pairs(where: str, value: Any, name: str) -> list[list[Any]]:
    if isinstance(value, list) and all(isinstance(one, list) and len(one) == 2 for one in value):  # noqa: PLR2004
        return value
    raise EvaluationError(f"{where}: “{name}” is not a list of pairs.")


def _joined(where: str, sentences: Any) -> str:
    if not isinstance(sentences, list) or not all(isinstance(one, str) for one in sentences):
        raise EvaluationError(f"{where}: “context” holds a paragraph that is no list of sentences.")
    return "".join(sentences).strip()
