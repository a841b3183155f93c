"""Reads every awkward file, real ones and made ones, and says whether each became what it should.

    python -m scripts.check_documents [--via here|cli|page] [--only WORD] [--slow]
        [--data FOLDER] [--weights FOLDER]

1. The files of a manifest (`--data`), each with what must be found in it or why it must be refused.
2. Files made on the spot: too large, lying, hostile, or oddly named (`scripts/hostile_documents.py`).

Each file is read in a process of its own, whose time and peak memory are measured. `here` reads only; `cli`
runs `specrag ingest` with the real embedder and looks for the words in the chunks that `specrag documents
show` prints; `page` uploads the file in Chromium to a real server and looks for them among the chunks on the
page (`scripts/page_documents.py`). Both leave out the files whose embedding takes long, up to an hour, unless
`--slow` asks for them. Prints a Markdown table. Exit status 1 if any file became something else.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scripts.hostile_documents import Case, made
from scripts.page_documents import PageReader, page_reader
from specrag.config import load_settings

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S, SLOW_LIMIT_S = 300.0, 14_400.0
"""For one file."""
_HERE = """
import json, sys, tempfile
from pathlib import Path
from specrag.config import load_settings
from specrag.errors import DocumentError
from specrag.ingest.archive import is_archive, unpack
from specrag.ingest.loaders import check_size, read
from specrag.ingest.text import clean_name
path, name, password = Path(sys.argv[1]), sys.argv[2], sys.argv[3] or None
settings = load_settings()
def outcome(path, name):
    try:
        document = read(path, name, settings, password=password)
    except DocumentError as error:
        return [{"name": name, "reason": error.reason, "error": str(error)}]
    return [{"name": document.source, "reason": "text", "pages": len(document.pages),
             "text": "\\n".join(page.text for page in document.pages)}]
def everything():
    if not is_archive(path, name):
        return outcome(path, name)
    with tempfile.TemporaryDirectory() as folder:
        try:
            check_size(path.stat().st_size, clean_name(name), settings)
            members = unpack(path, name, settings, Path(folder))
        except DocumentError as error:
            return [{"name": name, "reason": error.reason, "error": str(error)}]
        return [row for member in members for row in outcome(member.path, member.name)]
rows = everything()
status = Path("/proc/self/status")  # getrusage would begin with the peak of the process that started this one
lines = status.read_text().splitlines() if status.is_file() else []
peak = next((int(line.split()[1]) // 1000 for line in lines if line.startswith("VmHWM")), 0)
json.dump({"rows": rows, "peak_mb": peak}, sys.stdout)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a file."""

    said: str
    """`text`, a reason, several joined by a plus sign, or how the process ended."""
    text: str = ""
    pages: int = 0
    error: str = ""
    seconds: float = 0.0
    megabytes: int = 0


def main() -> int:
    """Read everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "docs")
    parser.add_argument("--via", choices=("here", "cli", "page"), default="here")
    parser.add_argument("--weights", type=Path, help="Folder of converted weights, for cli and page.")
    parser.add_argument("--slow", action="store_true", help="Also files whose embedding takes long.")
    parser.add_argument("--only", default="", help="Only files with this in their names.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="specrag-documents-") as folder:
        (Path(folder) / "made").mkdir()
        with ProcessPoolExecutor(1) as pool:  # what is started later would begin with the memory of this one
            hostile = pool.submit(made, Path(folder) / "made", load_settings()).result()
        cases = [*_manifest(options.data), *hostile]
        cases = [case for case in cases if options.only in case.name]
        if options.via != "here":
            cases = [case for case in cases if options.slow or not case.slow]
        if options.via == "cli":
            cases = [case for case in cases if case.name == case.path.name]
        print(f"| file | expected | {options.via} | pages | characters | s | peak MB | ok |")
        print("|---|---|---|---|---|---|---|---|")
        with page_reader(options.weights) if options.via == "page" else nullcontext() as page:
            wrong = sum(not _row(*_outcome(case, options, Path(folder), page)) for case in cases)
    print(f"\n{len(cases)} files, {wrong} not as expected.")
    return 1 if wrong or not cases else 0


def _manifest(folder: Path) -> list[Case]:
    listed = folder / "manifest.jsonl"
    if not listed.is_file():
        print(f"There is no {listed}; only made files are read.", file=sys.stderr)
        return []
    cases = []
    for line in listed.read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        expected = {"text": ("text",), "text_or_error": ("text", item["error_kind"])}
        case = Case(
            path=folder / item["file"],
            name=item["file"],
            expected=expected.get(item["outcome"], (item["error_kind"],)),
            must_contain=tuple(item["must_contain"]),
            must_not_contain=tuple(item["must_not_contain"]),
        )
        cases.append(case)
        if item["password"]:
            cases.append(replace(case, expected=("text",), password=item["password"]))
    return cases


def _outcome(
    case: Case, options: argparse.Namespace, folder: Path, page: PageReader | None
) -> tuple[Case, Outcome]:
    """What was expected of a file on this way, and what became of it."""
    if page is not None:
        said, text, error, seconds = page.read(case)
        outcome = Outcome(said=said, text=text, error=error, seconds=seconds)
        return _on_the_page(case), outcome
    return case, _read_here(case) if options.via == "here" else _ingested(case, options, folder)


def _on_the_page(case: Case) -> Case:
    """A case in the words of the page, which shows the beginning of a long text."""
    expected = tuple(
        "+".join(sorted({"text" if word == "text" else "refused" for word in one.split("+")}))
        for one in case.expected
    )
    return replace(case, expected=expected, must_contain=() if case.slow else case.must_contain)


def _read_here(case: Case) -> Outcome:
    command = [sys.executable, "-c", _HERE, str(case.path), case.name, case.password or ""]
    answer, ended = _run(command, dict(os.environ))
    if answer is None:
        return ended
    return _joined(answer["rows"], replace(ended, megabytes=answer["peak_mb"] or ended.megabytes))


def _ingested(case: Case, options: argparse.Namespace, folder: Path) -> Outcome:
    home = Path(tempfile.mkdtemp(dir=folder))
    if options.weights:
        (home / "weights").symlink_to(options.weights.resolve(), target_is_directory=True)
    environment = {**os.environ, "SPECRAG_HOME": str(home)}
    program = [sys.executable, "-m", "specrag"]
    password = ["--password", case.password] if case.password else []
    command = [*program, "ingest", "--json", *password, "--", str(case.path)]
    answer, ended = _run(command, environment, limit_s=SLOW_LIMIT_S if case.slow else LIMIT_S)
    if answer is None:
        return ended
    rows = []
    for file in answer["files"]:
        row = {"reason": file.get("reason") or "text", "error": file.get("error"), "text": ""}
        if file["status"] == "ready":
            shown, _ = _run([*program, "documents", "show", file["document_id"], "--json"], environment)
            row["text"] = " ".join(chunk["text"] for chunk in (shown or {"chunks": []})["chunks"])
            row["pages"] = (shown or {"document": {}})["document"].get("pages", 0)
        rows.append(row)
    return _joined(rows, ended)


def _run(command: list[str], environment: dict[str, str], *, limit_s: float = LIMIT_S) -> tuple[Any, Outcome]:
    """What a process printed as JSON (None if it did not), and what it cost."""
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as complained:
        started = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603 - our own program, without a shell
            command, stdout=printed, stderr=complained, env=environment, cwd=ROOT
        )
        watch = threading.Timer(limit_s, process.kill)
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        watch.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - started
        printed.seek(0)
        complained.seek(0)
        last = complained.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
        try:
            answer = json.loads(printed.read())
        except ValueError:
            answer = None
    said = f"ended with {process.returncode}"
    return answer, Outcome(said=said, error=last, seconds=seconds, megabytes=_megabytes(usage))


def _megabytes(usage: resource.struct_rusage) -> int:
    unit = 1 if sys.platform == "darwin" else 1024  # getrusage counts in bytes there and in KiB here
    return int(usage.ru_maxrss * unit / 1e6)


def _joined(rows: list[dict[str, Any]], ended: Outcome) -> Outcome:
    return Outcome(
        said="+".join(sorted({row["reason"] for row in rows})),
        text="\n".join(row.get("text") or "" for row in rows),
        pages=sum(row.get("pages") or 0 for row in rows),
        error="; ".join(row["error"] for row in rows if row.get("error")),
        seconds=ended.seconds,
        megabytes=ended.megabytes,
    )


def _row(case: Case, became: Outcome) -> bool:
    """Print one row of the table; whether all is well."""
    text = _folded(became.text)
    missing = [phrase for phrase in case.must_contain if _folded(phrase) not in text]
    present = [phrase for phrase in case.must_not_contain if phrase in became.text]
    read = "text" in became.said
    good = became.said in case.expected and not (read and (missing or present))
    named = became.said == "text" or bool(re.search(r"\.(;|$)", became.error))
    name = json.dumps(case.name if len(case.name) <= 40 else f"{case.name[:38]}…", ensure_ascii=False)  # noqa: PLR2004
    cells = (
        name.strip('"').replace("|", "\\|").replace("\u202e", "\\u202e")
        + (" (password)" if case.password else ""),
        " or ".join(case.expected),
        became.said,
        str(became.pages or ""),
        str(len(became.text) or ""),
        f"{became.seconds:.1f}",
        str(became.megabytes),
        "yes" if good and named else f"NO: {missing or present or became.error[-200:]}",
    )
    print("| " + " | ".join(cells) + " |", flush=True)
    return good and named


def _folded(text: str) -> str:
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", text))


if __name__ == "__main__":
    sys.exit(main())
