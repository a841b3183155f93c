"""What the commands do with a finished report: a page in a file, and a copy that the page shows."""

from pathlib import Path

import pytest

from specrag.cli.reports import html_of, keep_report
from specrag.config import load_settings
from specrag.evaluation.shelf import Shelf
from tests.report_samples import evaluation, latency
from tests.ui_html import find


def test_either_report_becomes_a_page() -> None:
    for report, title in (
        (evaluation(), "Evaluation: bikes, bells"),
        (latency(), "Latency: smollm2-135m drafts"),
    ):
        page = html_of(report)
        head = page[: page.index("<script")]
        assert head.startswith("<!doctype html>")
        assert title in head


def test_a_copy_is_kept_for_the_page(tmp_path: Path) -> None:
    keep_report(load_settings({}, home=tmp_path), evaluation())
    assert [one.title for one in Shelf(tmp_path).kept()] == [
        "bikes, bells: 4 questions, standard, speculative, speculative:drafts=2"
    ]


def test_a_home_that_cannot_be_written_costs_only_the_copy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After an hour of computing, the report itself must not be lost for its copy."""
    home = tmp_path / "home"
    home.write_text("a file")
    keep_report(load_settings({}, home=home), evaluation())
    assert "cannot be kept" in capsys.readouterr().err


def test_the_page_is_one_document() -> None:
    page = html_of(evaluation())
    assert len(find(page[: page.index("<script>")] + "</body></html>", "sr-report-part")) == 7
