"""What happens in an opened run: it is shown, its replay is prepared, it is decided again.

Every handler asks the history for the run anew, so that a visitor who may no longer see it gets a sentence,
and nothing of a run is kept for a page.
"""

import itertools
from dataclasses import replace
from typing import Any, Final

import gradio as gr

from specrag.errors import SpecragError
from specrag.library.visitors import Visitor
from specrag.startup import Startup
from specrag.tracing.export.events_of import events_of
from specrag.tracing.trace import Trace
from specrag.types import PresetName
from specrag.ui import cards
from specrag.ui.detail.film import SCOPE, film_card, film_of, player, stage
from specrag.ui.detail.map_card import perspective_map
from specrag.ui.detail.prompts import prompts_list
from specrag.ui.detail.score_card import score_table
from specrag.ui.detail.span_table import span_table
from specrag.ui.detail.terms import COMPONENTS
from specrag.ui.detail.what_if import Wish, can_ask, preset_wish, wish_of, wished
from specrag.ui.detail.what_if_card import nothing_to_ask, what_if_card
from specrag.ui.figures import waterfall
from specrag.ui.memory import colour_of
from specrag.ui.who import visitor_of

SHOWN: Final = (
    "head",
    "replay",
    "film",
    "colour",
    "answer",
    "passages",
    "board",
    "stage",
    "timeline",
    "plot",
    "spans",
    "scores",
    "map",
    "prompts",
)
"""The components that a run is written to, beside those of the what-if."""
_SETTINGS: Final = len(COMPONENTS) + 3
_ON: Final = '<div class="sr-detail-on" hidden></div>'


class Events:
    """The handlers."""

    def __init__(self, startup: Startup) -> None:
        self._startup = startup
        self._keys = itertools.count(1)

    def shown(self, who: Visitor, run_id: str) -> tuple[Any, ...]:
        """A run with all its parts, in the order of `Detail.shown`; nothing for an empty id."""
        if not run_id:
            return _nothing("")
        try:
            trace = self._read(who, run_id)
        except SpecragError as error:
            return _nothing(cards.notice("error", str(error)))
        return opened(trace)

    def film(self, run_id: str, request: gr.Request) -> str:
        """The pictures of the replay, when its player asks for them."""
        try:
            trace, parts = self._trace(run_id, request), self._startup.parts
            events = parts.history.events(visitor_of(request, parts.settings), run_id)
            film = replace(film_of(events or events_of(trace)), run_id=run_id)
            return film_card(film, key=str(next(self._keys)))
        except SpecragError as error:
            return cards.notice("error", str(error))
        except ValueError:
            return cards.notice("error", "The events of this run cannot be read, so it cannot be replayed.")

    def recolour(self, run_id: str, colour: str, request: gr.Request) -> tuple[Any, Any]:
        """Answer and board with their tokens coloured by somebody's probabilities."""
        try:
            trace = self._trace(run_id, request)
        except SpecragError:
            return gr.skip(), gr.skip()
        return _coloured(trace, colour_of(colour))

    def decide(self, request: gr.Request, run_id: str, *values: Any) -> Any:
        """The run under the settings that were moved."""
        try:
            trace = self._trace(run_id, request)
            return what_if_card(trace, _wish(trace, values))
        except SpecragError as error:
            return cards.notice("error", str(error))

    def default(self, request: gr.Request, run_id: str, *values: Any) -> tuple[Any, ...]:
        """The weights that hold if nobody chooses."""
        return self._preset("default", run_id, values, request)

    def paper(self, request: gr.Request, run_id: str, *values: Any) -> tuple[Any, ...]:
        """The weights of the paper."""
        return self._preset("paper", run_id, values, request)

    def reset(self, run_id: str, request: gr.Request) -> tuple[Any, ...]:
        """The settings of the run."""
        try:
            trace = self._trace(run_id, request)
        except SpecragError as error:
            return _only_card(cards.notice("error", str(error)))
        return (*_settings_of(trace), _card_of(trace))

    def _preset(
        self, name: PresetName, run_id: str, values: tuple[Any, ...], request: gr.Request
    ) -> tuple[Any, ...]:
        try:
            trace = self._trace(run_id, request)
            # the sliders of the weights may all be at 0 now, which the preset mends
            wish = preset_wish(_wish(trace, (1.0, *values[1:])), name)
        except SpecragError as error:
            return _only_card(cards.notice("error", str(error)))
        return (*_updates(wish), what_if_card(trace, wish))

    def _trace(self, run_id: str, request: gr.Request) -> Trace:
        return self._read(visitor_of(request, self._startup.settings), run_id)

    def _read(self, who: Visitor, run_id: str) -> Trace:
        if not self._startup.state.ready:
            raise SpecragError(self._startup.state.message)
        return self._startup.parts.history.trace(who, run_id)


def opened(trace: Trace) -> tuple[Any, ...]:
    """A run with all its parts, in the order of `Detail.shown`."""
    return (*_parts(trace), *_settings_of(trace), _card_of(trace))


def _parts(trace: Trace) -> tuple[Any, ...]:
    """In the order of `SHOWN`."""
    answer, board = _coloured(trace, "none")
    return (
        _ON,
        player(trace),
        "",
        "none",
        answer,
        cards.passages_strip(trace, scope=SCOPE),
        board,
        stage(),
        cards.timeline(trace),
        waterfall(trace) if trace.spans else None,
        span_table(trace),
        score_table(trace),
        perspective_map(trace, scope=SCOPE),
        prompts_list(trace),
    )


def _coloured(trace: Trace, colour: cards.Colour) -> tuple[str, str]:
    """Answer and board; what is known of a token is told by its colour and on it, so there are no tables."""
    return (
        cards.answer_card(trace, colour=colour, scope=SCOPE),
        cards.board(trace, colour=colour, scope=SCOPE, tokens=False),
    )


def _nothing(head: str) -> tuple[Any, ...]:
    empty = [{"plot": None, "colour": "none"}.get(name, "") for name in SHOWN[1:]]
    return (head, *empty, *[gr.skip()] * _SETTINGS, "")


def _only_card(html: str) -> tuple[Any, ...]:
    return (*[gr.skip()] * _SETTINGS, html)


def _card_of(trace: Trace) -> str:
    if not can_ask(trace):
        return nothing_to_ask(trace)
    try:
        return what_if_card(trace, wish_of(trace))
    except SpecragError as error:
        return cards.notice("error", str(error))


def _settings_of(trace: Trace) -> tuple[Any, ...]:
    """The sliders as the run had them; where its settings cannot be read they stay."""
    if not can_ask(trace):
        return (gr.skip(),) * _SETTINGS
    try:
        return _updates(wish_of(trace), most=len(trace.drafts))
    except SpecragError:
        return (gr.skip(),) * _SETTINGS


def _updates(wish: Wish, *, most: int | None = None) -> tuple[Any, ...]:
    """Weights, threshold, drafts and pooling; `most` drafts can be chosen."""
    drafts: dict[str, Any] = {} if most is None else {"maximum": max(2, most), "interactive": most > 1}
    return (
        *(gr.update(value=weight) for weight in wish.weights.values()),
        gr.update(value=wish.threshold),
        gr.update(value=wish.drafts, **drafts),
        gr.update(value=wish.pool),
    )


def _wish(trace: Trace, values: tuple[Any, ...]) -> Wish:
    """The settings that were sent, in the order of the panel."""
    if len(values) != _SETTINGS:
        return wish_of(trace)
    weights: dict[str, object] = dict(zip(COMPONENTS, values, strict=False))
    threshold, drafts, pool = values[len(COMPONENTS) :]
    return wished(weights, threshold, pool, drafts, trace=trace)
