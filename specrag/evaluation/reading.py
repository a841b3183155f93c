"""Reports from a file, checked before anything is drawn of them: anybody can hand in anything as a report.

What comes out has the form that `document` writes, with nothing in it that is not shown: plain finite
numbers, texts of a bounded length without control characters, and few enough of each to draw.
"""

import json
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from specrag.evaluation.form import Evaluation
from specrag.evaluation.form_parts import Part
from specrag.evaluation.latency.form import Latency
from specrag.evaluation.problems import EvaluationError

EVALUATION: Final = "specrag.eval/1"
LATENCY: Final = "specrag.bench/1"
MOST_BYTES: Final = 8 << 20
Report: TypeAlias = dict[str, Any]
"""A checked document; `schema` says which."""

_KINDS: Final[dict[str, type[Part]]] = {EVALUATION: Evaluation, LATENCY: Latency}


def read_report(data: bytes, name: str = "The file") -> Report:
    """The report in a file.

    Raises:
        EvaluationError: it is too large, is no JSON, or is no report of this program.
    """
    if len(data) > MOST_BYTES:
        raise EvaluationError(f"{name} is larger than {MOST_BYTES >> 20} MiB; a report is a small JSON file.")
    try:
        told = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise EvaluationError(
            f"{name} is not JSON; hand in what --json of eval or bench has written."
        ) from error
    return checked(told, name)


def checked(told: object, name: str = "The report") -> Report:
    """The same for what is read already.

    Raises:
        EvaluationError: it is no report of this program.
    """
    schema = told.get("schema") if isinstance(told, dict) else None
    kind = _KINDS.get(schema) if isinstance(schema, str) else None
    if kind is None:
        raise EvaluationError(f"{name} is no report; hand in what --json of eval or bench has written.")
    try:
        return kind.model_validate(told).model_dump(by_alias=True)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])[:100]
        raise EvaluationError(f"{name} is no whole report: {place or 'it'}: {first['msg'][:200]}.") from error
