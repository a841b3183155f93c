"""The endpoints and tools of the real page over toy models: `python -m tests.api_page`.

In a process of its own, as `tests/who_page.py`. Everything between a program and the models is real; what is
answered is written by a scripted model within milliseconds.
"""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path

import gradio as gr
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from specrag.config import load_settings
from specrag.models.base import Conversation, Line, Output
from specrag.models.scripted import ScriptedModel, Written
from specrag.startup import Startup
from specrag.ui import endpoints
from specrag.ui.app import launch_options
from tests.toys import WordEmbedder

ROOT = Path(__file__).resolve().parents[1]
QUESTION = "Who founded Larkspur Works?"
ANSWER = "Larkspur Works was founded by the scripted model"
ENDLESS = "How long does this question keep the models of Larkspur Works?"
"""A question that is never answered."""


@contextmanager
def serving(home: Path, **settings: str) -> Iterator[str]:
    """The address of such a page; `settings` by their variable, without the prefix."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("SPECRAG_")}
    variables |= {f"SPECRAG_{name}": value for name, value in settings.items()}
    variables |= {"SPECRAG_HOME": str(home), "GRADIO_TEMP_DIR": str(home / "gradio")}
    log = home / "page.log"
    with (
        log.open("wb") as written,
        subprocess.Popen(
            [sys.executable, "-m", "tests.api_page"],
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
            yield url
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


class _Model(ScriptedModel):
    """Answers within milliseconds, but for one question."""

    async def generate(
        self, conversations: Sequence[Conversation], lines: Sequence[Line]
    ) -> AsyncGenerator[tuple[int, Output]]:
        if ENDLESS in str(conversations):
            await asyncio.Event().wait()
        async with aclosing(super().generate(conversations, lines)) as outputs:
            async for output in outputs:
                yield output


def _write(_: str) -> Written:
    return {"rationale": f" The passage says so: {ANSWER}.", "answer": f" {ANSWER}"}


def main() -> None:
    """Serve until the process is told to end."""
    settings = load_settings()
    startup = Startup(settings)
    model = _Model(_write)
    startup.parts.__dict__.update(
        embedder=_Embedder(settings.home / "tokenizer.json"), drafter=model, verifier=model
    )
    with gr.Blocks(analytics_enabled=False, delete_cache=(3600, 3600)) as page:
        endpoints.wire(startup)
    page.queue(default_concurrency_limit=8)
    _, url, _ = page.launch(prevent_thread_lock=True, **launch_options(settings, startup))
    startup.begin()
    state = startup.wait()
    if not state.ready:
        sys.exit(state.message)
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main()
