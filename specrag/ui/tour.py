"""The walkthrough: seven steps over the Ask tab, played in the browser from recorded real runs.

The browser fetches one document, all frames and sentences of the recordings, and needs the server no more.
The frames are drawn on a stage of their own that takes the place of the tab's parts while the tour is on, so
what a visitor has on the page, a run that is going on included, stays exactly as it is behind it.
"""

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import gradio as gr
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from specrag.events import Event
from specrag.tracing.codec import events_from_json
from specrag.tracing.trace import fold
from specrag.ui.markup import render
from specrag.ui.tour_frames import film
from specrag.ui.tour_steps import StepKey, steps

FOLDER: Final = Path(__file__).resolve().parents[2] / "assets" / "walkthrough"
NAMES: Final = ("disputed", "plain")
"""The recordings, the one that the tour begins with first."""
SPEED: Final = 2
"""How much faster than the run the frames are shown."""
PATH: Final = "/walkthrough.json"
ON_LOAD: Final = (Path(__file__).parent / "tour.js").read_text(encoding="utf-8")
PRESENT_ON_LOAD: Final = (Path(__file__).parent / "present.js").read_text(encoding="utf-8")
_SPOTS: Final[dict[StepKey, str]] = {
    "question": '[data-sr-part="question"]',
    "passages": '[data-sr-part="passages"]',
    "subsets": '[data-sr-part="board"] .sr-card',
    "drafts": '[data-sr-part="board"] .sr-card',
    "scores": '[data-sr-part="board"] .sr-scores',
    "decision": '[data-sr-part="answer"]',
    "trace": '[data-sr-part="timeline"]',
}
"""What a step lights up; several things are lit up as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A recorded run."""

    name: str
    events: tuple[Event, ...]


def recordings(folder: Path = FOLDER) -> tuple[Recorded, ...]:
    """The runs that are shipped.

    Raises:
        TraceError: a file does not hold the events of a run.
        OSError: a file is missing.
    """
    return tuple(
        Recorded(
            name=name,
            events=tuple(events_from_json((folder / f"{name}.json").read_text(encoding="utf-8"))),
        )
        for name in NAMES
    )


def script(recorded: Sequence[Recorded]) -> dict[str, Any]:
    """What the browser plays: for each run its frames, and its steps with their sentences."""
    return {"speed": SPEED, "runs": [_played(run) for run in recorded]}


def _played(run: Recorded) -> dict[str, Any]:
    trace, pictures = fold(run.events), film(run.events)
    told = steps(trace, events=len(run.events))
    stops = [pictures.stops[step.key] for step in told]
    return {
        "name": run.name,
        "question": trace.question,
        "frames": [{"at": round(frame.at_ms), "parts": frame.parts} for frame in pictures.frames],
        "steps": [
            {
                "title": step.title,
                "text": step.sentences,
                "spot": _SPOTS[step.key],
                "from": stops[max(0, number - 1)],
                "to": stop,
            }
            for number, (step, stop) in enumerate(zip(told, stops, strict=True))
        ],
    }


def route() -> Route:
    """Where the browser fetches the script; it holds texts of the sample and nothing of a visitor."""

    def walkthrough(request: Request) -> Response:
        plain, packed = _script_bytes()
        fits = "gzip" in request.headers.get("accept-encoding", "")
        headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"} if fits else {}
        return Response(packed if fits else plain, media_type="application/json", headers=headers)

    return Route(PATH, walkthrough)


@cache
def _script_bytes() -> tuple[bytes, bytes]:
    """The script, plain and packed to a sixteenth; made once, since the files do not change meanwhile."""
    plain = json.dumps(script(recordings()), ensure_ascii=False).encode()
    return plain, gzip.compress(plain)


def tools() -> gr.HTML:
    """The buttons of the header, with the dialog of the tour and the way out of the presenter view."""
    return gr.HTML(render("tour", steps=len(_SPOTS)), elem_id="sr-top-tools", apply_default_css=False)


def stage() -> gr.HTML:
    """Where the tour draws, within the Ask tab; a hint of it stands here while nothing has been asked."""
    return gr.HTML(render("tour_stage"), elem_id="sr-tour-stage", apply_default_css=False)


def wire(page: gr.Blocks) -> None:
    """Start both scripts with the page."""
    for js in (ON_LOAD, PRESENT_ON_LOAD):
        page.load(None, None, None, js=js, api_visibility="private")
