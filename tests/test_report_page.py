"""The file that carries reports: it runs our scripts only, asks for nothing, and texts are never markup."""

import base64
import hashlib
import json
import re
from typing import Any

from specrag.evaluation.reading import checked
from specrag.ui.report.bench_parts import bench_figures
from specrag.ui.report.cards import head, tables, words
from specrag.ui.report.eval_parts import eval_figures
from specrag.ui.report.page import report_page
from specrag.ui.standalone import standalone
from tests.report_samples import HOSTILE, evaluation, latency
from tests.ui_html import find, read
from tests.ui_traces import SELECTED


def hostile() -> list[dict[str, Any]]:
    """Every text of both reports is an attack."""
    made = evaluation(dataset=HOSTILE, command=HOSTILE, corpus=HOSTILE)
    made["pipelines"] = {HOSTILE: made["pipelines"]["speculative"]}
    made["pipelines"][HOSTILE]["failed"] = [{"question": HOSTILE, "error": HOSTILE}]
    made["judge"] = {"model": HOSTILE, "problem": HOSTILE, "pipelines": {HOSTILE: {}}}
    made["differences"] = [
        {**made["differences"][0], "pipeline": HOSTILE, "against": HOSTILE, "metric": HOSTILE}
    ]
    made["datasets"] = {HOSTILE + end: {"n": 1, "pipelines": made["pipelines"]} for end in "ab"}
    other = latency(label=HOSTILE, drafter=HOSTILE, verifier=HOSTILE, ttft_means=HOSTILE)
    other["standard"]["phases"][0]["name"] = HOSTILE
    other["costs"][0] |= {"what": HOSTILE, "assumes": [HOSTILE]}
    other["sweep"]["points"][0]["verifier"] = HOSTILE
    return [checked(made), checked(other)]


def test_texts_of_a_report_are_never_markup() -> None:
    for report in hostile():
        made = eval_figures(report) if report["schema"] == "specrag.eval/1" else bench_figures(report)
        html = head(report) + "".join(words(part) + tables(part) for part in made)
        assert not find(html, "img")
        assert not find(html, "script")
        assert "${" not in html
        assert "{{" not in html
        for part in made:
            if part.figure is not None:
                assert "<img" not in part.figure.to_json()
                assert "<script" not in part.figure.to_json()


def scripts(page: str) -> list[str]:
    return re.findall(r"<script>(.*?)</script>", page, re.DOTALL)


def test_the_file_runs_our_two_scripts_and_nothing_else() -> None:
    page = report_page(evaluation())
    library, draw = scripts(page)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in (library, draw)]
    assert f"script-src 'sha256-{digests[0]}' 'sha256-{digests[1]}'" in policy[1].split("; ")
    assert "default-src 'none'" in policy[1]
    assert library.startswith("/**")
    assert page.count("data-sr-figure ") == 5
    assert report_page(latency()).count("data-sr-figure ") == 3


def test_a_file_without_figures_runs_nothing() -> None:
    made = evaluation(differences=[], datasets={})
    made["pipelines"] = {"standard": {**made["pipelines"]["standard"], "latency": {}}}
    page = report_page(made)
    assert not scripts(page)
    assert "script-src" not in page


def test_a_run_and_a_report_are_files_of_one_kind() -> None:
    """The second copy of the head and the policy would go its own way."""
    pages = (report_page(evaluation()), standalone(SELECTED))
    heads = [[one for one in read(page) if one.tag in {"meta", "link"}] for page in pages]
    told = [
        [{k: v.partition("; script-src")[0] for k, v in one.attributes.items()} for one in some]
        for some in heads
    ]
    assert told[0] == told[1]
    feet = [next(one.text for one in read(page) if one.tag == "footer") for page in pages]
    assert feet[0] == feet[1]


def test_the_file_of_a_hostile_report_holds_data_only() -> None:
    """Figures are drawn from JSON in the file; one that ends its element early would be a script."""
    for page in map(report_page, hostile()):
        rest = page.replace(scripts(page)[-2], "")
        assert len(scripts(page)) == 2
        elements = read(rest)
        assert not [one for one in elements if one.tag == "img"]
        figures = [one for one in elements if one.attributes.get("type") == "application/json"]
        assert len(figures) == len([one for one in elements if "data-sr-figure" in one.attributes])
        for figure in figures:
            assert set(json.loads("".join(figure.pieces))) == {"data", "layout"}


def test_the_file_asks_for_nothing() -> None:
    """An address in it would be a request, or at least a question whether it is one."""
    for page in map(report_page, (evaluation(), latency())):
        rest = page.replace(scripts(page)[0], "")
        assert not re.search(r"(https?:)?//[a-z]", rest)
        for one in read(rest):
            assert one.attributes.get("src") is None
            assert one.attributes.get("href", "data:,") == "data:,"
