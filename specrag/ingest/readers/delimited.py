"""CSV, TSV and their relatives: whatever stands between the cells is found by trying.

The delimiter is the one that cuts the first lines into the same number of cells most often. Rows become
records that repeat the header's names, unless that would be more text than is allowed.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Literal

from specrag.ingest.readers.content import Content, Gathering, Source, counted
from specrag.ingest.readers.plain import decoded
from specrag.ingest.readers.tables import lines, tidy, width_of_header
from specrag.ingest.text import prose

_DELIMITERS = ",;\t|"
_SAMPLE = 100
_SAMPLE_CHARACTERS = 65_536
_LONGEST = 1_000_000
"""Characters of one cell."""
_TALLEST = 200
"""Lines of one cell."""
_STATED = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)


def read_delimited(source: Source) -> Content:
    """The rows of a table in plain text, one on each line.

    Raises:
        DocumentError: `corrupt` or `too_large`.
    """
    raw, encoding = decoded(source)
    text = raw.replace("\0", "")
    stated = _STATED.match(text)
    text = text[stated.end() :] if stated else text
    delimiter = stated[1] if stated else _delimiter(text)
    csv.field_size_limit(_LONGEST)
    quoting = _quoting(text, delimiter)
    head = list(islice(_rows(text, delimiter, quoting), _SAMPLE))
    repeated = width_of_header(head) * text.count("\n")
    records = len(text) + repeated <= source.limits.characters
    table = lines(_rows(text, delimiter, quoting), records=records)
    gathering = Gathering(source)
    gathering.add(prose("\n".join(counted(table, source))))
    return Content(pages=gathering.pages, encoding=encoding)


def _rows(text: str, delimiter: str, quoting: Literal[0, 3]) -> Iterator[list[str]]:
    """Cells, row by row."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting)
    try:
        for row in reader:
            yield [tidy(cell) for cell in row]
    except csv.Error:
        # One cell of more than a million characters: what it holds is text, but no table.
        yield from ([tidy(line)] for line in text.splitlines()[reader.line_num - 1 :])


def _quoting(text: str, delimiter: str) -> Literal[0, 3]:
    """Whether quotes mean anything: not if one is never closed, which would make one cell of many rows."""
    if '"' not in text:
        return csv.QUOTE_NONE
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    before = span = longest = 0
    try:
        for _ in reader:
            span, before = reader.line_num - before, reader.line_num
            longest = max(longest, span)
    except csv.Error:
        return csv.QUOTE_NONE
    unclosed = span > 1 and text.count('"') % 2 == 1
    return csv.QUOTE_NONE if unclosed or longest > _TALLEST else csv.QUOTE_MINIMAL


def _delimiter(text: str) -> str:
    sample = text[:_SAMPLE_CHARACTERS]
    if len(text) > len(sample):
        sample = sample.rpartition("\n")[0] or sample
    return max(_DELIMITERS, key=lambda delimiter: _agreement(sample, delimiter))


def _agreement(sample: str, delimiter: str) -> tuple[float, int]:
    """Share of the rows that have the usual number of cells, and that number; nothing where it is one."""
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
    widths: Counter[int] = Counter()
    try:
        widths.update(len(row) for row in islice(reader, _SAMPLE) if row)
    except csv.Error:
        return 0.0, 0
    if not widths:
        return 0.0, 0
    width, count = widths.most_common(1)[0]
    return (count / widths.total(), width) if width > 1 else (0.0, 0)
