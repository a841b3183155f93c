"""The formats that are read, by their names: what people bring, and what an extension claims."""

from typing import Literal, TypeAlias

Format: TypeAlias = Literal[
    "pdf", "docx", "pptx", "xlsx", "xlsb", "xls", "ods", "csv", "html", "markdown", "epub", "json", "jsonl",
    "text", "code",
]  # fmt: skip

SUFFIXES = (
    ".pdf", ".docx", ".pptx", ".xlsx", ".xls", ".xlsb", ".ods", ".csv", ".tsv", ".html", ".md", ".epub",
    ".json", ".jsonl", ".txt", ".zip",
)  # fmt: skip
"""What a person is told to bring; more spellings, and code and data as text, are read as well."""
SUPPORTED = "PDF, DOCX, PPTX, XLSX, XLS, XLSB, ODS, CSV, HTML, Markdown, EPUB, JSON, plain text, code and ZIP"

BY_EXTENSION: dict[str, Format] = {
    ".pdf": "pdf",
    ".docx": "docx",
    ".docm": "docx",
    ".pptx": "pptx",
    ".pptm": "pptx",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".xlsb": "xlsb",
    ".xls": "xls",
    ".ods": "ods",
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".epub": "epub",
    ".json": "json",
    ".geojson": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "text",
    ".text": "text",
}
