"""A small page with the options of the real one, whose endpoint says who asked: `python -m tests.who_page`.

In a process of its own, because gradio leaves sockets and event loops behind that our tests would count.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import gradio as gr
from gradio.events import api

from specrag.config import load_settings
from specrag.startup import Startup
from specrag.ui.app import launch_options
from specrag.ui.who import visitor_of

ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def serving(home: Path, **settings: str) -> Iterator[str]:
    """The address of such a page; `settings` by their variable, without the prefix."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("SPECRAG_")}
    variables |= {f"SPECRAG_{name}": value for name, value in settings.items()}
    with (
        (home / "page.log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "tests.who_page"],
            cwd=ROOT,
            env={**variables, "SPECRAG_HOME": str(home), "GRADIO_ANALYTICS_ENABLED": "False"},
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
            yield url
        finally:
            process.terminate()


def main() -> None:
    """Serve until the process is told to end."""
    settings = load_settings()
    startup = Startup(settings)

    def who(request: gr.Request) -> dict[str, object]:
        visitor = visitor_of(request, settings)
        return {"id": visitor.id, "owner": visitor.owner, "passing": visitor.passing}

    with gr.Blocks() as blocks:
        api(who, api_name="who")
    _, url, _ = blocks.launch(prevent_thread_lock=True, **launch_options(settings, startup))
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main()
