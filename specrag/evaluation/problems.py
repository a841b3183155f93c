"""What an evaluation refuses, as one sentence."""

from typing import ClassVar

from specrag.errors import SpecragError


class EvaluationError(SpecragError):
    """The data or the folder of an evaluation cannot be used."""

    kind: ClassVar[str] = "evaluation"
