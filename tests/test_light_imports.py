"""`import specrag` and the command line's help load no model library, and the public names are these."""

import subprocess
import sys

import pytest

import specrag

HEAVY = (
    "torch",
    "transformers",
    "sentence_transformers",
    "chromadb",
    "gradio",
    "plotly",
    "sklearn",
    "trafilatura",
)
NAMES = {
    "Answer",
    "Decision",
    "Draft",
    "Event",
    "LanguageModel",
    "Partition",
    "Passage",
    "Rag",
    "RunError",
    "Settings",
    "SpecragError",
    "Subset",
    "Trace",
    "__version__",
    "decide_again",
    "fold",
    "load_settings",
    "load_trace",
    "save_trace",
}


def loaded_by(statement: str, names: tuple[str, ...]) -> str:
    code = f"import sys; {statement}; print([name for name in {names!r} if name in sys.modules])"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.parametrize(
    "statement",
    [
        "import specrag",
        "import specrag.cli",
        "import specrag.build",
        "import specrag.pipelines.speculative",
        "import specrag.startup",
        "import specrag.doctor",
        "from specrag import *",
    ],
)
def test_importing_loads_nothing_heavy(statement: str) -> None:
    assert loaded_by(statement, HEAVY) == "[]"


def test_the_package_alone_loads_none_of_its_own_modules() -> None:
    """The names are looked up on demand: even the settings, and pydantic with them, wait until then."""
    assert loaded_by("import specrag", ("pydantic", "numpy", "specrag.types", "specrag.api")) == "[]"


def test_the_public_names_are_these_and_each_is_there() -> None:
    assert set(specrag.__all__) == NAMES
    assert len(specrag.__all__) == len(NAMES)
    assert set(dir(specrag)) >= NAMES
    for name in NAMES:
        assert getattr(specrag, name) is not None, name


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Ragg'"):
        _ = specrag.Ragg  # type: ignore[attr-defined]  # which a type checker says too
