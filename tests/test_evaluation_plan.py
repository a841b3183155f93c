"""Which runs may stand in one table: those of the same data, settings, conditions and code."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import specrag
from specrag.evaluation.folder import Folder
from specrag.evaluation.plan import code
from specrag.evaluation.problems import EvaluationError
from specrag.evaluation.systems import systems_of
from tests.evaluation_rig import DATA, evaluated, plan, runner


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"seed": 2}, "with seed 1, and now it is 2"),
        ({"corpus": "open"}, 'with corpus "given", and now it is "open"'),
        ({"datasets": (replace(DATA, sha256="f" * 64),)}, "with data.bikes "),
        ({"systems": systems_of("standard:answer_tokens=9")}, ""),
        (
            {"settings": plan().settings.model_copy(update={"drafts": 2})},
            "with settings.drafts 4, and now it is 2",
        ),
        *(
            ({"settings": plan().settings.model_copy(update={name: value})}, f"with conditions.{name} ")
            for name, value in (("reranker", "a-cross-encoder"), ("threads", 255), ("deadline_s", 9.0))
        ),
        ({"datasets": (replace(DATA, form="hotpotqa"),)}, 'with forms.bikes "", and now it is "hotpotqa"'),
    ],
)
async def test_another_plan_is_refused_by_name(tmp_path: Path, changes: dict[str, object], says: str) -> None:
    """Half of a table under other settings is no table, and nobody would see it."""
    folder, _ = await evaluated(tmp_path, plan("standard"))
    folder.close()
    again = Folder(tmp_path)
    other = plan("standard", **changes)
    if not says:  # another system is no other plan
        runner(again, other)
        return
    with pytest.raises(EvaluationError) as refused:
        runner(again, other)
    assert says in str(refused.value)
    assert "--restart" in str(refused.value)
    again.begin({"data": {}, "systems": {}}, restart=True)
    assert again.finished == {}
    assert not list((tmp_path / "traces").iterdir())


@pytest.mark.parametrize("files", [("bikes", "bells"), ("bells",)])
async def test_an_open_corpus_belongs_to_its_files(tmp_path: Path, files: tuple[str, ...]) -> None:
    """With another file every question looks among more passages: the runs of before did not."""
    folder = Folder(tmp_path)
    made = plan("standard", corpus="open")
    folder.begin(made.document({}, {}))
    folder.close()
    other = replace(made, datasets=tuple(replace(DATA, name=name) for name in files))
    with pytest.raises(
        EvaluationError, match=r"holds runs with data\.(bells not set|bikes .*, and now it is not set)"
    ):
        Folder(tmp_path).begin(other.document({}, {}))


def test_a_restart_removes_the_corpus(tmp_path: Path) -> None:
    """What an open corpus has left stays for nobody when a folder begins anew with the questions' own passages."""
    folder = Folder(tmp_path)
    folder.begin(plan("standard", corpus="open").document({}, {}))
    (tmp_path / "chroma").mkdir()
    (tmp_path / "chroma" / "chroma.sqlite3").write_text("")
    folder.begin(plan("standard").document({}, {}), restart=True)
    assert not (tmp_path / "chroma").exists()


async def test_code_that_answers_follow_from_is_part_of_the_plan(tmp_path: Path) -> None:
    """A changed prompt changes every answer and no version."""
    folder, _ = await evaluated(tmp_path, plan("standard"))
    folder.close()
    file = tmp_path / "plan.json"
    file.write_text(file.read_text().replace('"code": "', '"code": "0'))
    with pytest.raises(EvaluationError, match="holds runs with code"):
        runner(Folder(tmp_path), plan("standard"))


@pytest.mark.parametrize(
    ("file", "decides"),
    [
        *((f"{name}.py", True) for name in ("prompts", "fairness", "forking", "overrides", "sent", "decide")),
        *((f"evaluation/{name}.py", True) for name in ("closed_book", "questions", "converters", "corpus")),
        *((f"evaluation/{name}.py", True) for name in ("preparing", "runner", "datasets", "systems")),
        ("ingest/chunks/searchable.py", True),
        ("models/engine.py", True),
        ("retrieval/bm25.py", True),
        *(
            (f"evaluation/{name}.py", False)
            for name in ("markdown", "words", "cells", "bootstrap", "judging")
        ),
        *((f"evaluation/{name}.py", False) for name in ("form", "form_parts", "reading", "shelf")),
        *(
            (f"evaluation/{name}.py", False)
            for name in ("guest", "sample_questions", "trial_folder", "trials")
        ),
        *((name, False) for name in ("ui/page.py", "cli/ask.py", "tracing/store.py", "library/shelves.py")),
        ("evaluation/latency/bench.py", False),
        ("evaluation/judge/answers.py", False),
    ],
)
def test_code_is_all_that_an_answer_follows_from(package: Path, file: str, decides: bool) -> None:
    """The closed book's prompt, how a claim is asked, the corpus: a list of files had left them all out."""
    path, before = package / file, code(package)
    text = path.read_bytes() if path.exists() else b""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text + b"# changed\n")
    changed = code(package)
    path.write_bytes(text)
    assert (changed != before) == decides


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the program's files."""
    root = tmp_path_factory.mktemp("copied") / "specrag"
    here = Path(specrag.__file__).parent
    shutil.copytree(here, root, ignore=shutil.ignore_patterns("__pycache__", "assets"))
    assert code(root) == code()
    return root


async def test_another_device_is_another_plan(tmp_path: Path) -> None:
    """Medians of a CPU and of an accelerator in one column are of neither."""
    folder = Folder(tmp_path)
    folder.begin(plan("standard").document({"device": "cpu, 2 threads"}, {}))
    with pytest.raises(EvaluationError, match=r'conditions\.device "cpu, 2 threads", and now it is "cuda"'):
        folder.begin(plan("standard").document({"device": "cuda"}, {}))
