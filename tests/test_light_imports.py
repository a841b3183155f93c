"""`import specrag` and the command line's help load no model library."""

import subprocess
import sys

import pytest

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


@pytest.mark.parametrize(
    "module",
    [
        "specrag",
        "specrag.cli",
        "specrag.build",
        "specrag.pipelines.speculative",
        "specrag.startup",
        "specrag.doctor",
    ],
)
def test_importing_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
