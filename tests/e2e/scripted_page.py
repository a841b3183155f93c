"""The real page over a scripted model of a given speed: `python -m tests.e2e.scripted_page TOKENS_A_SECOND`.

For what is about the page and not about the models: very many events, very many runs. The drafts are long and
the same for every question. In a process of its own, as a real server is.
"""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from specrag.build import Parts
from specrag.config import load_settings
from specrag.models.base import Conversation, Line, Output, Piece
from specrag.models.scripted import ScriptedModel, Written
from specrag.startup import Startup
from specrag.ui.app import build_app, launch_options
from tests.e2e.serving import ROOT, Server, free_port

DRAFTS: Final = 4
WORDS: Final = 150
"""Of each draft, so a run of four has six hundred tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedPage(Server):
    """Such a page, running."""

    pid: int


@contextmanager
def scripted_page(home: Path, *, embedder: Path, per_second: float) -> Iterator[ScriptedPage]:
    """Start it, wait until it is ready, and stop it at the end; `per_second` 0 writes without a pause."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("SPECRAG_")}
    variables |= {
        "SPECRAG_HOME": str(home),
        "SPECRAG_PORT": str(free_port()),
        "SPECRAG_EMBEDDER": str(embedder),
        "SPECRAG_DRAFTS": str(DRAFTS),
        "SPECRAG_RATIONALE_TOKENS": str(WORDS),
        "GRADIO_TEMP_DIR": str(home / "gradio"),
        "GRADIO_ANALYTICS_ENABLED": "False",
    }
    with (
        (home / "page.log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.scripted_page", str(per_second)],
            cwd=ROOT,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        url = process.stdout.readline().strip().rstrip("/")
        assert url, (home / "page.log").read_text(encoding="utf-8")
        try:
            yield ScriptedPage(url=url, home=home, pid=process.pid)
        finally:
            process.terminate()


class PacedModel(ScriptedModel):
    """Writes so many tokens a second, all drafts together."""

    def __init__(self, per_second: float) -> None:
        """0 writes without a pause."""
        super().__init__(_write, judge=lambda text: 0.5 + (len(text) % 40) / 100)
        self._pause_s = 1 / per_second if per_second else 0.0

    async def generate(
        self, conversations: Sequence[Conversation], lines: Sequence[Line]
    ) -> AsyncGenerator[tuple[int, Output]]:
        """See `LanguageModel.generate`."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        async with aclosing(super().generate(conversations, lines)) as outputs:
            async for index, output in outputs:
                if isinstance(output, Piece):
                    due += self._pause_s
                    await asyncio.sleep(max(0.0, due - loop.time()))
                yield index, output


def _write(text: str) -> Written:
    """A long rationale that differs from subset to subset."""
    kind = len(text) % 7
    rationale = " ".join(f"word{(kind + number) % 90}" for number in range(WORDS))
    return {"rationale": f" {rationale}", "answer": f" answer {kind}"}


def main() -> None:
    """Serve until the process is told to end; the address is told when it is ready."""
    settings = load_settings()
    startup = Startup(settings)
    model = PacedModel(float(sys.argv[1]))
    startup.parts = Parts(settings, drafter=model, verifier=model)
    _, url, _ = build_app(startup).launch(prevent_thread_lock=True, **launch_options(settings, startup))
    startup.begin()
    if not startup.wait().ready:
        raise RuntimeError(startup.state.message)
    httpx.get(f"{url}health").raise_for_status()
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main()
