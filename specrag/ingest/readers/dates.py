"""Dates as files state them, in many spellings, made ISO dates; what cannot be meant is no date.

A wrong date is worse than none, because answers prefer recent documents: clocks that were never set and the
dates that libraries copy from their templates are left out.
"""

import re
from datetime import UTC, date, datetime, timedelta

_PDF = re.compile(r"D:(\d{4})(\d{2})?(\d{2})?")
_ISO = re.compile(r"\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?![\d-])")
_EARLIEST = 1970
_TEMPLATES = (
    "2006-09-16T00:00:00",  # Excel's own blank workbook
    "2013-01-27T09:14:16",  # python-pptx
    "2013-01-27T09:15:58",
    "2013-12-23T23:15:00",  # python-docx
)


def stated_date(value: str | None) -> str | None:
    """The ISO date of a statement such as `2024-05-06T07:08:09Z`, `2024-5`, `2024` or `D:20240506`.

    A month or day that is left out is the first one. None where the date is missing, no date, before 1970, in
    the future, or the date of a well-known template.
    """
    if not value or value.strip().startswith(_TEMPLATES):
        return None
    found = _PDF.match(value) or _ISO.match(value)
    if found is None:
        return None
    year, month, day = (int(part or 1) for part in found.groups())
    try:
        stated = date(year, month, day)
    except ValueError:
        return None
    # A file from the other side of the date line may be of tomorrow.
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    plausible = stated.year >= _EARLIEST and stated != date(_EARLIEST, 1, 1) and stated <= tomorrow
    return stated.isoformat() if plausible else None
