"""The real page over a program whose models never come: `python -m tests.e2e.modelless`.

What works here works while weights are loading, and without a model at all. In a process of its own, because
gradio leaves sockets and event loops behind that our tests would count.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from specrag.config import load_settings
from specrag.startup import Startup
from specrag.ui.app import build_app, launch_options
from tests.e2e.serving import ROOT, free_port


@contextmanager
def waiting_page(home: Path) -> Iterator[str]:
    """The address of such a page."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("SPECRAG_")}
    variables |= {
        "SPECRAG_HOME": str(home),
        "SPECRAG_PORT": str(free_port()),
        "GRADIO_TEMP_DIR": str(home / "gradio"),
        "GRADIO_ANALYTICS_ENABLED": "False",
    }
    with (
        (home / "page.log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.modelless"],
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
            yield url
        finally:
            process.terminate()


def main() -> None:
    """Serve until the process is told to end; the start is never begun."""
    settings = load_settings()
    startup = Startup(settings)
    _, url, _ = build_app(startup).launch(prevent_thread_lock=True, **launch_options(settings, startup))
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main()
