"""Both forms of a report hold the same tables: whoever reads the page misses nothing of the Markdown."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from specrag.evaluation.latency.markdown import markdown as latency_markdown
from specrag.evaluation.markdown import markdown
from specrag.evaluation.reading import checked
from specrag.ui.report.summary import parts_of
from tests.evaluation_rig import DATA
from tests.report_samples import latency
from tests.test_evaluation_report import report

Rows = tuple[tuple[str, int], ...]
"""Name of each row and how many cells it has."""


def in_markdown(text: str) -> list[Rows]:
    """The tables of a text."""
    found: list[list[tuple[str, int]]] = []
    before = ""
    for line in text.splitlines():
        if line.startswith("| "):
            if not before.startswith("| "):
                found.append([])
            cells = line.strip("| ").split(" | ")
            found[-1].append((cells[0].strip("`").replace("_", "-"), line.count(" | ") + 1))
        before = line
    return [tuple(rows[2:]) for rows in found]


def on_the_page(made: dict[str, Any]) -> list[Rows]:
    """The tables of the page."""
    tables = [table for part in parts_of(checked(made)) for table in part.tables]
    return [tuple((one[0].text.replace("_", "-"), len(one)) for one in table.rows) for table in tables]


def judge(made: dict[str, Any]) -> dict[str, Any]:
    """What a model said of a report's runs, as it is written."""
    kappa = {"mean": 0.5, "low": 0.1, "high": 0.9, "luck_p": 0.01, "n": 4, "clear": True}
    agreement = {"n": 4, "share": 0.75, "kappa": kappa}
    counts = {"asked": 4, "repeated": 0, "unread": 0, "unheard": 0}
    marks = {"judged": counts, "faithfulness": counts}
    of_one = {
        "verdicts": {"correct": 3, "incorrect": 1, "declined": 0},
        "agreement": agreement,
        "marks": marks,
    }
    return {
        "model": "big-1",
        "answered_as": ["big-1-0613"],
        "servers": ["https://models.example.com"],
        "temperature": 0.0,
        "problem": "",
        "tokens": {"prompt": 1234, "completion": 56, "uncounted": 2},
        "agreement": agreement,
        "datasets": {name: {"agreement": agreement} for name in made["datasets"]},
        "marks": {mark: {"by": f"{mark} 12ab", **counts} for mark in marks},
        "pipelines": dict.fromkeys(made["pipelines"], of_one),
    }


async def test_an_evaluation_has_the_same_tables_in_both_forms(tmp_path: Path) -> None:
    """The page lacked what other pipelines chose, the judge by file, and for what it was asked."""
    bells = replace(DATA, name="bells", questions=DATA.questions[:2])
    made = await report(
        tmp_path, "standard,speculative,speculative:drafts=2", datasets=(DATA, bells), limit=2
    )
    made["judge"] = judge(made)
    text, page = markdown(made), on_the_page(made)
    there = in_markdown(text)
    assert len(there) == 13
    assert sorted(page) == sorted(there)
    (part,) = (one for one in parts_of(checked(made)) if one.title == "The judge: big-1")
    assert part.words == ("Over 4 answers judge and score agree on 75%; kappa is 0.500 (0.100 to 0.900).",)
    for line in part.notes[:3]:
        assert line[1:].removesuffix(".") in text
    assert part.notes[2] == ("Tokens: 1,234 read, 56 written, without 2 replies that were not counted.")


def test_a_benchmark_has_the_same_tables_in_both_forms() -> None:
    made = latency()
    assert sorted(on_the_page(made)) == sorted(in_markdown(latency_markdown(made)))
