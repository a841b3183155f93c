"""The page: layout, wiring and start. Everything that is shown is computed in the pure files beside it.

The server answers at once; weights and models follow in the background while the page says how far they are.
Nothing of a visitor is kept in module globals: a run is known by its id alone.
"""

import signal
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import gradio as gr
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from specrag import __version__
from specrag.config import Settings
from specrag.errors import UsageError
from specrag.library.expiry import Housekeeper
from specrag.library.library import SAMPLE
from specrag.models.weights import Progress
from specrag.startup import Startup, StartupState
from specrag.terminal import bar, say
from specrag.ui import acts, attempts, endpoints, mcp, tour
from specrag.ui.live import header
from specrag.ui.streams import WholeStreams
from specrag.ui.tabs import ask, compare, detail, documents, evaluate, exports, fork, traces, viewer
from specrag.ui.theme import CSS_PATH, plot_css, theme
from specrag.ui.who import VisitorCookie, login_of

LAYOUT_CSS = CSS_PATH.with_name("layout.css")
DOCUMENTS_CSS = CSS_PATH.with_name("documents.css")
VIEWER_CSS = CSS_PATH.with_name("viewer.css")
TOUR_CSS = CSS_PATH.with_name("tour.css")
COMPARE_CSS = CSS_PATH.with_name("compare.css")
TRACES_CSS = CSS_PATH.with_name("traces.css")
ON_LOAD = (Path(__file__).parent / "page.js").read_text(encoding="utf-8")
_LOOK_S = 0.5
"""How often the main thread looks whether it is to stop."""
VISITORS = 64
"""Events that may run at once; more wait in gradio's queue."""


def build_app(startup: Startup) -> gr.Blocks:
    """The page over the parts that `startup` prepares."""
    upload_keep_s = 3600
    page: gr.Blocks
    with gr.Blocks(
        title="specrag", analytics_enabled=False, delete_cache=(upload_keep_s, upload_keep_s), fill_width=True
    ) as page:
        with gr.Row(elem_id="sr-top"):
            top = gr.HTML(header(startup, SAMPLE), elem_id="sr-header", apply_default_css=False)
            tour.tools()
        act = acts.channel()
        with gr.Tabs(elem_id="sr-tabs") as tabs:
            with gr.Tab("Ask", id="ask"):
                fork_line = fork.build_line()
                ask_tab = ask.build(startup)
                tour.stage()
            compare_tab = compare.build(startup)
            traces_tab = traces.build(startup)
            with gr.Tab("Documents", id="documents"):
                documents_tab = documents.build(startup)
            evaluate_tab = evaluate.build(startup)
        sheet = viewer.build()
        endpoints.wire(startup)  # first: a listener of the page that is called `ask` would take the name
        ask.wire(page, ask_tab, startup, top, act.answers)
        documents.wire(page, documents_tab, startup, ask_tab, top, act.documents)
        compare.wire(page, compare_tab, startup, act.compare, asking=ask_tab, tabs=tabs)
        evaluate.wire(page, evaluate_tab, startup, act.evaluate)
        tour.wire(page)
        place = traces.Place(tabs=tabs, line=fork_line)
        traces.wire(page, traces_tab, startup, act, ask_tab, place)
        viewer.wire(page, sheet, startup, act.viewer, documents_tab.panel.picker)
    page.queue(default_concurrency_limit=VISITORS, max_size=4 * VISITORS)
    return page


def launch_options(settings: Settings, startup: Startup) -> dict[str, Any]:
    """Arguments of `launch`, the same for `app.py`, the command line and the tests.

    Raises:
        UsageError: the settings want tools over MCP, and their package is missing.
    """
    login = login_of(settings)
    tools = mcp.served(startup, login)
    return {
        "server_name": settings.host,
        "server_port": settings.port,
        "theme": theme(),
        "css_paths": [
            CSS_PATH,
            LAYOUT_CSS,
            DOCUMENTS_CSS,
            VIEWER_CSS,
            TOUR_CSS,
            TRACES_CSS,
            detail.CSS,
            COMPARE_CSS,
            evaluate.CSS,
        ],
        "css": plot_css(),
        "js": ON_LOAD,
        "max_file_size": settings.max_file_mb * 2**20,  # gradio says it in units of 1,024
        "app_kwargs": {
            "routes": [_health_route(startup), tour.route(), *tools.routes],
            "middleware": [
                Middleware(attempts.Caller),
                Middleware(VisitorCookie, days=settings.visitor_days),
                Middleware(WholeStreams),
            ],
            **tools.options,
        },
        "mcp_server": False,  # gradio's own makes a tool of every endpoint, and knows no login
        "auth": login,
        "auth_message": attempts.MESSAGE,
        "footer_links": ["api"],
        "run_history": False,
        "ssr_mode": False,
        "quiet": True,
    }


def serve(settings: Settings) -> None:
    """Serve the page until the process is told to stop; the terminal shows how far the start is.

    Raises:
        UsageError: the address or the port cannot be used.
    """
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with bar() as tell:
        startup = Startup(settings, tell=lambda state: tell(_step(state)))
        page = build_app(startup)
        try:
            _, url, _ = page.launch(prevent_thread_lock=True, **launch_options(settings, startup))
        except OSError as error:
            raise UsageError(f"The page cannot be served: {error} Set SPECRAG_PORT to a free one.") from error
        say(f"specrag {__version__} is at {url}")
        startup.begin()
        while not (stop.is_set() or startup.state.ready or startup.state.failed):
            startup.wait(_LOOK_S)
    if not stop.is_set():
        state = startup.state
        say(f"{state.message}: {url}" if state.ready else f"Error: {state.message}")
    keeper: Housekeeper | None = None
    while not stop.wait(_LOOK_S):
        if keeper is None and startup.state.ready:
            keeper = Housekeeper(startup.parts.library, sweep=lambda: _sweep(startup))
            keeper.start()
    say("Stopping.")
    if keeper is not None:
        keeper.close()
    if startup.state.ready:
        startup.parts.comparisons.shut_down()
        startup.parts.runs.shut_down()
    page.close(verbose=False)
    startup.close()
    startup.parts.close()


def _sweep(startup: Startup) -> None:
    """Delete what has ended besides collections."""
    exports.sweep()
    startup.parts.history.expire()
    startup.parts.comparisons.expire(datetime.now(UTC))


def _step(state: StartupState) -> Progress:
    """A state of the start as the terminal's bar understands it."""
    if state.fraction is None:
        return Progress(step=state.message, done=0, total=0)
    return Progress(step=state.message, done=round(100 * state.fraction), total=100)


def _health_route(startup: Startup) -> Route:
    async def health(request: Request) -> JSONResponse:  # noqa: ARG001 - starlette's signature
        state = startup.state
        status = "ready" if state.ready else "failed" if state.failed else "starting"
        active = {"runs": 0, "model_jobs": 0, "server_prompts": 0}
        if state.ready:
            parts = startup.parts
            active = {
                "runs": parts.runs.active,
                "model_jobs": parts.worker.pending,
                "server_prompts": parts.server_prompts,
            }
        return JSONResponse(
            {
                "status": status,
                "message": state.message,
                "version": __version__,
                "active": active,
            },
            status_code=503 if state.failed else 200,
        )

    return Route("/health", health)
