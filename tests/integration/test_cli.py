"""The command line on the real weights and a real store, as a script from outside uses it."""

import json
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from specrag.tracing.codec import from_json
from tests.made_files import docx, pdf

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[2]
QUESTION = "How much energy does the Corvale lamp hold?"
BATTERY = "The Corvale lamp holds 640 watt-hours.\nIt weighs 3.4 kilograms.\nIt glows for nine nights."
HISTORY = "<w:p><w:r><w:t>The Corvale lamp was invented by Ines Tolland in 1931 in the town of Sarn.</w:t></w:r></w:p>"


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.out)
        return loaded


@dataclass(frozen=True)
class CommandLine:
    home: Path
    embedder: Path
    model: Path

    def __call__(self, *words: str | Path, **environment: str) -> Outcome:
        variables = {
            **os.environ,
            "SPECRAG_HOME": str(self.home),
            "SPECRAG_EMBEDDER": str(self.embedder),
            "SPECRAG_DRAFTER": str(self.model),
            "SPECRAG_VERIFIER": str(self.model),
            **environment,
        }
        done = subprocess.run(
            [sys.executable, "-m", "specrag", *map(str, words)],
            cwd=ROOT,
            env=variables,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def specrag(tmp_path_factory: pytest.TempPathFactory, embedder_path: Path, model_path: Path) -> CommandLine:
    return CommandLine(tmp_path_factory.mktemp("home"), embedder_path, model_path)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("files")
    first, second = folder / "lamp.pdf", folder / "history.docx"
    filler = "The meadow is wide.\nSheep graze there in summer.\nA brook runs through it."
    first.write_bytes(pdf(BATTERY, filler, filler.replace("meadow", "field")))
    second.write_bytes(docx(HISTORY))
    return [first, second]


@pytest.fixture(scope="module")
def asked(specrag: CommandLine, files: list[Path]) -> Outcome:
    return specrag("ask", QUESTION, "--docs", *files, "--json")


def test_ask_prints_one_valid_trace(asked: Outcome) -> None:
    assert asked.code == 0, asked.err
    trace = asked.document
    assert trace["schema"] == "specrag.trace/1"
    assert from_json(asked.out).run_id == trace["run_id"]
    assert len(trace["subsets"]) >= 2
    assert len(trace["drafts"]) == len(trace["subsets"])
    assert {passage["source"] for passage in trace["passages"]} == {"lamp.pdf", "history.docx"}
    assert trace["decision"]["kind"] in ("selected", "abstained", "fallback")


@pytest.mark.parametrize("pipeline", ["standard", "drafter", "multihop"])
def test_every_pipeline_answers_over_the_same_passages(
    asked: Outcome, specrag: CommandLine, files: list[Path], pipeline: str
) -> None:
    """Otherwise the baselines would be compared on other evidence. Multi-hop RAG begins with the same."""
    other = specrag("ask", QUESTION, "--docs", *files, "--pipeline", pipeline, "--json")
    assert other.code == 0, other.err
    trace = other.document
    assert from_json(other.out).pipeline == pipeline
    first = (
        trace["hops"][0]["passage_ids"] if pipeline == "multihop" else [p["id"] for p in trace["passages"]]
    )
    assert first == [passage["id"] for passage in asked.document["passages"]]
    assert "640" in trace["answer"]["text"]
    assert set(trace["answer"]["citations"]) <= {passage["id"] for passage in trace["passages"]}
    assert 0 < trace["answer"]["confidence"] <= 1
    assert trace["decision"]["kind"] == "direct"
    assert all(span["end_ms"] is not None for span in trace["spans"])
    reader = "drafter" if pipeline == "drafter" else "verifier"
    assert trace["usage"][reader]["completion_tokens"] >= len(trace["answer_tokens"]) > 0


def test_hops_are_told_to_a_person(specrag: CommandLine, files: list[Path]) -> None:
    outcome = specrag("ask", QUESTION, "--docs", *files, "--pipeline", "multihop")
    assert outcome.code == 0, outcome.err
    assert f"hop 1: {QUESTION}" in outcome.err
    assert "note: " in outcome.err
    assert "Multi-hop RAG: " in outcome.err
    assert "hop" not in outcome.out


def test_the_choices_of_a_run_are_options(specrag: CommandLine, files: list[Path]) -> None:
    words = ("--partition", "contiguous", "--preset", "paper", "--seed", "3", "--focus", "1", "--grounded")
    outcome = specrag("ask", QUESTION, "--docs", *files, *words, "--decision", "synthesise", "--json")
    assert outcome.code == 0, outcome.err
    trace = outcome.document
    config = trace["config"]
    assert (config["partition"], config["preset"], config["seed"]) == ("contiguous", "paper", 3)
    assert config["weights"]["relevance"] == 0
    ids = [passage["id"] for passage in trace["passages"]]
    assert [subset["passage_ids"] for subset in trace["subsets"]] == [ids[:2], ids[2:]]
    assert all(0 < draft["scores"]["grounded"] <= 1 for draft in trace["drafts"] if draft["answer"])
    assert not any("It glows for nine nights" in draft["prompt"] for draft in trace["drafts"])
    assert trace["decision"]["kind"] in ("synthesised", "selected", "abstained")


def test_every_draft_has_all_three_scores(asked: Outcome) -> None:
    for draft in asked.document["drafts"]:
        for name in ("draft", "self_containment", "self_reflection"):
            assert 0 < draft["scores"][name] <= 1, (name, draft)
        assert draft["tokens"]
        assert draft["verifier_tokens"]


def test_spans_nest_and_cover_the_run(asked: Outcome) -> None:
    trace = asked.document
    spans = {span["id"]: span for span in trace["spans"]}
    root = next(span for span in trace["spans"] if span["parent_id"] is None)
    steps = [span for span in trace["spans"] if span["parent_id"] == root["id"]]
    for span in trace["spans"]:
        parent = spans.get(span["parent_id"])
        if parent:
            assert parent["start_ms"] <= span["start_ms"] <= span["end_ms"] <= parent["end_ms"]
    covered = sum(span["end_ms"] - span["start_ms"] for span in steps)
    assert covered >= 0.95 * trace["elapsed_ms"]


def test_usage_is_told_by_role(asked: Outcome) -> None:
    usage = asked.document["usage"]
    assert usage["drafter"]["prompt_tokens"] > 100
    assert usage["drafter"]["completion_tokens"] > 0
    assert usage["verifier"]["forward_passes"] == 1
    assert usage["verifier"]["completion_tokens"] == 0


def test_no_path_of_this_machine_is_in_the_trace(asked: Outcome, specrag: CommandLine) -> None:
    assert str(specrag.home) not in asked.out
    assert str(specrag.model.parent) not in asked.out


def test_the_run_was_kept_and_can_be_shown(asked: Outcome, specrag: CommandLine) -> None:
    shown = specrag("trace", "show", asked.document["run_id"], "--json")
    assert shown.document == asked.document
    assert asked.document["run_id"] in specrag("trace", "list", "--json").out


def test_a_run_can_be_read_without_json(asked: Outcome, specrag: CommandLine, tmp_path: Path) -> None:
    """What a person sees: the answer, its reason, a row for each draft; and the file that `export` writes."""
    run_id = asked.document["run_id"]
    shown = specrag("trace", "show", run_id)
    assert asked.document["answer"]["text"] in shown.out
    assert asked.document["decision"]["reason"][:40] in shown.out
    assert shown.out.count("0.") >= 4 * len(asked.document["drafts"])
    assert run_id in specrag("trace").out
    written = tmp_path / "trace.json"
    assert specrag("trace", "export", run_id, "--out", written).code == 0
    exported = json.loads(written.read_text())
    assert len(exported.pop("events")) > 20, "an export can be replayed"
    assert exported == asked.document
    assert specrag("trace", "export", run_id, "--format", "carrier-pigeon").code == 2


def test_the_sample_is_asked_when_there_is_nothing_else(specrag: CommandLine) -> None:
    outcome = specrag("ask", "What is the maximum load of the Larkspur 3?")
    assert outcome.code == 0, outcome.err
    assert "160 kilograms" in outcome.out
    assert "service-bulletin" in outcome.out
    assert "180 kilograms" in outcome.out + outcome.err
    assert "the sample is asked" in outcome.err
    assert "Disputed:" in outcome.err
    assert "draft 1:" in outcome.err


def test_ingest_list_show_delete(specrag: CommandLine, files: list[Path]) -> None:
    first = specrag("ingest", *files, "--collection", "lamps", "--json")
    assert first.code == 0, first.err
    assert first.document["schema"] == "specrag.ingest/1"
    rows = first.document["files"]
    assert [row["status"] for row in rows] == ["ready", "ready"]
    assert [row["path"] for row in rows] == [str(path) for path in files]
    assert rows[0]["pages"] == 3
    assert all(row["chunks"] >= 1 for row in rows)
    again = specrag("ingest", files[0], "--collection", "lamps", "--json")
    assert [row["status"] for row in again.document["files"]] == ["duplicate"]
    assert "lamp.pdf" in specrag("documents", "--collection", "lamps").out
    listed = specrag("documents", "list", "--collection", "lamps", "--json").document["documents"]
    assert {item["source"] for item in listed} == {"lamp.pdf", "history.docx"}
    identity = rows[0]["document_id"]
    shown = specrag("documents", "show", identity, "--collection", "lamps", "--json").document
    assert shown["document"]["id"] == identity
    assert any("640 watt-hours" in chunk["text"] and chunk["page"] == 1 for chunk in shown["chunks"])
    assert specrag("documents", "reindex", "--collection", "lamps", "--json").document["chunks"] >= 2
    removed = specrag("documents", "delete", identity, "--collection", "lamps", "--json")
    assert removed.document["chunks_removed"][identity] >= 1
    gone = specrag("documents", "show", identity, "--collection", "lamps")
    assert gone.code == 1
    assert "There is no document" in gone.err


def test_options_before_the_subcommand_count_too(specrag: CommandLine, files: list[Path]) -> None:
    """`documents --collection X delete ID` looked into "documents", and `--json` before it was lost."""
    (row,) = specrag("ingest", files[1], "--collection", "early", "--json").document["files"]
    early = ("documents", "--json", "--collection", "early")
    assert [item["id"] for item in specrag(*early, "list").document["documents"]] == [row["document_id"]]
    assert specrag(*early, "show", row["document_id"]).document["document"]["source"] == "history.docx"
    later = specrag(*early, "show", row["document_id"], "--collection", "documents")
    assert (later.code, later.out) == (1, ""), "what stands after the subcommand wins"
    removed = specrag(*early, "delete", row["document_id"]).document
    assert removed["collection"] == "early"
    assert "early" in {
        item["name"] for item in specrag("collections", "--json", "list").document["collections"]
    }
    assert specrag("trace", "--json", "list").document["schema"] == "specrag.traces/1"


def test_an_archive_is_one_entry_for_each_file(
    specrag: CommandLine, files: list[Path], tmp_path: Path
) -> None:
    """The whole archive used to be one file that could not be read."""
    archive = tmp_path / "papers.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.write(files[0], "inner/lamp.pdf")
        made.writestr("inner/empty.md", "")
    outcome = specrag("ingest", archive, "--collection", "papers", "--json")
    assert outcome.code == 1
    rows = {row["path"]: row for row in outcome.document["files"]}
    good, bad = rows[f"{archive}/inner/lamp.pdf"], rows[f"{archive}/inner/empty.md"]
    assert (good["status"], good["pages"]) == ("ready", 3)
    assert (bad["status"], bad["reason"]) == ("failed", "empty_file")
    asked = specrag("ask", QUESTION, "--docs", archive, "--pipeline", "standard", "--json")
    assert asked.code == 0, asked.err
    assert asked.document["passages"][0]["source"] == "papers.zip/inner/lamp.pdf"


def test_collections_are_made_named_exported_and_imported(
    specrag: CommandLine, files: list[Path], tmp_path: Path
) -> None:
    made = specrag("collections", "create", "Night lights", "--description", "Lamps.", "--json")
    assert made.code == 0, made.err
    (shelf,) = made.document["collections"]
    assert (shelf["title"], shelf["description"], shelf["documents"]) == ("Night lights", "Lamps.", 0)
    assert specrag("collections", "create", "night LIGHTS").code == 1
    assert specrag("collections", "create", " ").code == 2
    ingested = specrag("ingest", *files, "--collection", "Night lights", "--json").document
    assert ingested["collection"] == shelf["name"]
    assert specrag("collections", "rename", "night lights", "Lamps at night").code == 0
    file = tmp_path / "lamps.zip"
    told = specrag("collections", "export", "Lamps at night", file, "--json").document
    assert (told["collection"], told["path"], told["bytes"]) == (
        shelf["name"],
        str(file),
        file.stat().st_size,
    )
    copy = specrag("collections", "import", file, "--json").document["collections"][0]
    assert (copy["title"], copy["description"], copy["documents"]) == ("Lamps at night (2)", "Lamps.", 2)
    listed = specrag("collections", "--json").document["collections"]
    assert [item["title"] for item in listed[:2]] == ["Sample", "Your documents"]
    assert {shelf["name"], copy["name"]} <= {item["name"] for item in listed}
    gone = specrag("collections", "delete", "Lamps at night", "--json").document
    assert (gone["collection"], gone["documents_removed"]) == (shelf["name"], 2)
    again = specrag("documents", "--collection", "Lamps at night (2)", "--json").document
    assert {item["source"] for item in again["documents"]} == {"lamp.pdf", "history.docx"}


def test_a_title_that_cannot_be_a_name_makes_a_collection(specrag: CommandLine, files: list[Path]) -> None:
    """The help offers a title, and the rules for names refused it."""
    first = specrag("ingest", files[1], "--collection", "Meine Akten", "--json")
    assert first.code == 0, first.err
    name = first.document["collection"]
    assert f"“Meine Akten” was made; its name is {name}" in first.err
    again = specrag("ingest", files[1], "--collection", "meine akten", "--json").document
    assert (again["collection"], again["files"][0]["status"]) == (name, "duplicate")
    listed = specrag("collections", "--json").document["collections"]
    assert [item["name"] for item in listed if item["title"] == "Meine Akten"] == [name]
    assert specrag("ingest", files[1], "--collection", " ").code == 2


def test_a_question_to_some_documents_finds_nothing_else(specrag: CommandLine, files: list[Path]) -> None:
    rows = specrag("ingest", *files, "--collection", "some", "--json").document["files"]
    words = ("--collection", "some", "--pipeline", "standard", "--json")
    asked = specrag("ask", QUESTION, "--documents", rows[1]["document_id"], *words)
    assert asked.code == 0, asked.err
    assert {passage["source"] for passage in asked.document["passages"]} == {"history.docx"}
    missing = specrag("ask", QUESTION, "--documents", "0000000000000000", *words)
    assert (missing.code, missing.out) == (1, "")
    assert "There is no document 0000000000000000" in missing.err


def test_a_newer_file_of_the_same_name_replaces_the_older(specrag: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "price.md"
    file.write_text("The lamp costs 40 crowns.")
    first = specrag("ingest", file, "--collection", "prices", "--json").document["files"][0]
    file.write_text("The lamp costs 45 crowns since spring.")
    second = specrag("ingest", file, "--collection", "prices", "--replace", "--json").document["files"][0]
    assert second["replaced"] == [first["document_id"]]
    shown = specrag("documents", "--collection", "prices", "--json").document["documents"]
    assert [item["id"] for item in shown] == [second["document_id"]]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("empty.pdf", b"", "empty"),
        ("program.pdf", b"MZ\x90\x00" + b"\x00" * 200, "program.pdf"),
        ("broken.pdf", b"%PDF-1.7\nnothing of use", "broken.pdf"),
    ],
)
def test_a_bad_file_is_one_sentence(
    specrag: CommandLine, tmp_path: Path, name: str, content: bytes, sentence: str
) -> None:
    (tmp_path / name).write_bytes(content)
    outcome = specrag("ingest", tmp_path / name, "--collection", "bad", "--json")
    assert outcome.code == 1
    (row,) = outcome.document["files"]
    assert row["status"] == "failed"
    assert sentence in row["error"]
    assert row["error"].count("\n") == 0


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("ask", "Q", "--pipeline", "psychic"), 2, "psychic"),
        (("ask", "Q", "--partition", "thirds"), 2, "thirds"),
        (("ask", "Q", "--focus", "-1"), 2, "SPECRAG_FOCUS_SENTENCES"),
        (("ask", "Q", "--docs", "nowhere.pdf"), 2, "nowhere.pdf"),
        (("ask", "Q", "--colour"), 2, "No such option"),
        (("trace", "show", "nothing"), 1, "There is no run"),
        (("documents", "delete", "x", "--collection", "sample"), 1, "read-only"),
        (("collections", "delete", "sample"), 1, "read-only"),
        (("collections", "delete", "attic"), 1, "There is no collection “attic”"),
        (("collections", "import", "nowhere.zip"), 2, "There is no file nowhere.zip"),
        (("documents", "--collection", "attic"), 1, "There is no collection “attic”"),
        (("documents", "list", "--collection", "attic", "--json"), 1, "There is no collection “attic”"),
        (("ask", "Q", "--collection", "attic"), 1, "There is no collection “attic”"),
        (("ingest", "app.py", "--collection", "sample"), 1, "read-only"),
    ],
)
def test_wrong_usage_and_expected_failures(
    specrag: CommandLine, words: tuple[str, ...], code: int, sentence: str
) -> None:
    outcome = specrag(*words)
    assert (outcome.code, outcome.out) == (code, "")
    assert sentence in outcome.err


def test_the_first_collection_is_empty_before_it_is_made(specrag: CommandLine, tmp_path: Path) -> None:
    """Nobody has misspelt anything there, so this is no error as a name that nothing has is one."""
    listed = specrag("documents", "--json", SPECRAG_HOME=str(tmp_path))
    assert (listed.code, listed.document["collection"]) == (0, "documents")
    assert listed.document["documents"] == []


def test_a_misspelt_setting_is_refused_by_its_name(specrag: CommandLine) -> None:
    outcome = specrag("documents", SPECRAG_DRAFTR="x")
    assert outcome.code == 2
    assert "did you mean SPECRAG_DRAFTER?" in outcome.err


def test_doctor_and_weights(specrag: CommandLine) -> None:
    report = specrag("doctor", "--json").document
    assert report["schema"] == "specrag.doctor/1"
    assert report["ok"] is True
    pulled = specrag("weights", "pull", "--json").document
    assert set(pulled["models"]) == {str(specrag.model), str(specrag.embedder)}


def test_an_empty_question_is_one_sentence(specrag: CommandLine, files: list[Path]) -> None:
    outcome = specrag("ask", "  ", "--docs", files[0])
    assert outcome.code == 1
    assert "The question is empty" in outcome.err


def test_a_run_that_takes_too_long_is_stopped_and_said(specrag: CommandLine, files: list[Path]) -> None:
    outcome = specrag("ask", QUESTION, "--docs", files[0], "--json", SPECRAG_DEADLINE_S="0.05")
    assert outcome.code == 1
    assert "longer than 0.05 s" in outcome.err
    assert outcome.document["error"]["type"] == "cancelled"
