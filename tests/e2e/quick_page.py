"""The whole page over scripted models: `python -m tests.e2e.quick_page`.

Everything between a browser and the models is real, and a run takes moments; tests that are not about what a
model writes need no more. In a process of its own, as `modelless.py`.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from specrag.config import load_settings
from specrag.models.scripted import ScriptedModel, Written
from specrag.startup import Startup
from specrag.ui.app import build_app, launch_options
from tests.e2e.serving import ROOT, Server, free_port
from tests.toys import WordEmbedder


@contextmanager
def quick_page(home: Path, **settings: str) -> Iterator[Server]:
    """Such a page, ready; `settings` by their variable, without the prefix."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("SPECRAG_")}
    variables |= {f"SPECRAG_{name}": value for name, value in settings.items()}
    variables |= {
        "SPECRAG_HOME": str(home),
        "SPECRAG_PORT": str(free_port()),
        "GRADIO_TEMP_DIR": str(home / "gradio"),
        "GRADIO_ANALYTICS_ENABLED": "False",
    }
    log = home / "server.log"
    with (
        log.open("wb") as written,
        subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.quick_page"],
            cwd=ROOT,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=written,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        url = process.stdout.readline().strip().rstrip("/")
        assert url, log.read_text(encoding="utf-8")
        try:
            yield Server(url=url, home=home)
        finally:
            process.terminate()
    assert "Traceback" not in log.read_text(encoding="utf-8"), log.read_text(encoding="utf-8")


class _Embedder(WordEmbedder):
    """Counts words; the chunker cuts by them as well."""

    def __init__(self, tokenizer_file: Path) -> None:
        self.tokenizer_file = tokenizer_file
        words = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
        words.pre_tokenizer = Whitespace()
        words.save(str(tokenizer_file))


def _write(text: str) -> Written:
    """Drafts differ with what they read; an instruction of somebody's own is followed."""
    answer = "In five words, as told" if "five words" in text else f"Answer from {len(text)} letters"
    return {"rationale": " The passage says so.", "answer": f" {answer}"}


def main() -> None:
    """Serve until the process is told to end."""
    settings = load_settings()
    startup = Startup(settings)
    model = ScriptedModel(_write)
    startup.parts.__dict__.update(
        embedder=_Embedder(settings.home / "tokenizer.json"), drafter=model, verifier=model
    )
    _, url, _ = build_app(startup).launch(prevent_thread_lock=True, **launch_options(settings, startup))
    startup.begin()
    state = startup.wait()
    if not state.ready:
        sys.exit(state.message)
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main()
