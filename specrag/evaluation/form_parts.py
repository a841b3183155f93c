"""What the forms of both reports are made of: texts and numbers that can be shown, whoever wrote them.

Bounds are wider than any report of this program needs, and narrow enough that drawing one stays quick.
"""

from typing import Annotated, Final, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

LONGEST: Final = 1000
MOST: Final = 1e15
MOST_FILES: Final = 100
MOST_SYSTEMS: Final = 100
MOST_SIZES: Final = 100
"""Files of questions, pipelines, verifiers of a curve: commands refuse more before they run anything."""


def _short(value: object) -> object:
    """A text that can be shown in a line; what is no text is left to the check."""
    if not isinstance(value, str):
        return value
    cut = value if len(value) <= LONGEST else f"{value[:LONGEST]}…"
    return "".join(sign if sign.isprintable() else " " for sign in cut)


Text: TypeAlias = Annotated[str, BeforeValidator(_short)]
Number: TypeAlias = Annotated[float, Field(ge=-MOST, le=MOST, allow_inf_nan=False)]
Count: TypeAlias = Annotated[int, Field(ge=0, le=MOST)]
Known: TypeAlias = Number | None
Named: TypeAlias = Annotated[dict[Text, Known], Field(max_length=200)]
Span: TypeAlias = tuple[Known, Known]
Spread: TypeAlias = Annotated[dict[Text, Known | Named], Field(max_length=50)]
"""Medians, with a part `p95` of the same names."""


class Part(BaseModel):
    """A part of a report; what is not named in it is left out."""

    model_config = ConfigDict(frozen=True, extra="ignore")
