"""What a search reads of a chunk: where it stands, then what it says.

A chunk out of the middle of a document often does not name what it is about, and a row of a table does not
name its columns. The title, the heading and the header row do, so the embedder and the word index read them
too. They are cut short: what is searched is the text.
"""

from specrag.types import Chunk

PREFIX = 200
"""Characters that title, section and lead may have together, line breaks included."""
_SHARES = (70, 60)
"""What title and section may have of them; the lead gets what is left."""


def searchable(chunk: Chunk) -> str:
    """Title, section and lead, shortened, and then the text."""
    return prefix(chunk.title, chunk.section, chunk.lead) + chunk.text


def prefix(title: str, section: str | None, lead: str | None) -> str:
    """The lines before the text: at most `PREFIX` characters, each line ended."""
    lines = [_short(title, _SHARES[0])]
    if section and section != title:
        lines.append(_short(section, _SHARES[1]))
    used = sum(len(line) + 1 for line in lines)
    if lead:
        lines.append(_short(lead, PREFIX - used - 1))
    return "".join(f"{line}\n" for line in lines if line)


def _short(text: str, limit: int) -> str:
    """One line, cut after a word where that loses little."""
    line = " ".join(text[: 4 * limit].split())
    if len(line) <= limit:
        return line
    cut = line[:limit].rpartition(" ")[0]
    return cut if len(cut) * 2 > limit else line[:limit]
