"""What the Traces tab shows now: from the history to updates of its components.

Every look is a fresh one; nothing of a visitor is kept here. The list, an opened run and a comparison take
turns: each is a piece of HTML that is empty while another one is shown, and the style sheet hides what
belongs to an empty one. So what is shown and what may take the focus of the keyboard arrive together.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from specrag.errors import SpecragError, TraceError
from specrag.library.visitors import Visitor
from specrag.startup import Startup
from specrag.tracing.history import History
from specrag.tracing.search import RunFilter, RunSummary
from specrag.tracing.trace import Trace
from specrag.ui import cards, trace_cards
from specrag.ui.diff_cards import diff_card
from specrag.ui.listing import SHOWN
from specrag.ui.tabs.traces_desk import Desk, Values, View
from specrag.ui.tabs.traces_files import formats
from specrag.ui.trace_cards import Opened
from specrag.ui.trace_diff import diff_runs
from specrag.ui.trace_list import Live, Neighbours, leaf_of, live_of, neighbours, pages_of, runs_list


def _now() -> datetime:
    return datetime.now(UTC)


class Board:
    """Draws the tab."""

    def __init__(self, startup: Startup, *, now: Callable[[], datetime] = _now) -> None:
        self._startup = startup
        self._now = now

    @property
    def _history(self) -> History:
        return self._startup.parts.history

    def draw(self, desk: Desk, message: str = "") -> tuple[View, Values]:
        """What the view asks for; where that cannot be shown, the list with a sentence."""
        if not self._startup.state.ready:
            waiting = cards.notice("info", self._startup.state.message)
            return desk.view, {"message": message or waiting}
        try:
            return self._drawn(desk, message)
        except SpecragError as error:
            desk = desk.turned(opened=False, pair=None)
            return self._drawn(desk, message + cards.notice("error", str(error)))

    def _drawn(self, desk: Desk, message: str) -> tuple[View, Values]:
        if desk.view.pair is not None:
            return desk.view, {"message": message, **self._compared(desk, desk.view.pair)}
        if desk.view.opened:
            view, values = self._opened(desk)
        else:
            view, values = self._list(desk)
        return view, {"message": message, **values}

    # The list

    def _list(self, desk: Desk) -> tuple[View, Values]:
        page = desk.view.page
        rows, found = self._page(desk.who, desk.wanted, page)
        if not rows and found:  # what stood on the last page was deleted
            page = pages_of(found)
            rows, found = self._page(desk.who, desk.wanted, page)
        page = min(page, pages_of(found))
        html = runs_list(
            leaf_of(rows, found, page),
            total=self._history.find(desk.who, RunFilter(), limit=1)[1],
            wanted=desk.wanted,
            live=self._live(desk.who),
            now=self._now(),
            focus=desk.view.focus,
            focus_on=desk.view.run_id,
            forget=str(desk.view.deleted or ""),
        )
        return replace(desk.view, page=page), _showing(runs=html)

    def _page(self, who: Visitor, wanted: RunFilter, page: int) -> tuple[list[RunSummary], int]:
        return self._history.find(who, wanted, limit=SHOWN, offset=(page - 1) * SHOWN)

    def _live(self, who: Visitor) -> list[Live]:
        """What goes on of theirs, newest first."""
        live: list[Live] = []
        for run_id in reversed(self._startup.parts.runs.live(None)):
            with suppress(TraceError):  # somebody else's, or not begun
                trace = self._history.trace(who, run_id)
                live.append(live_of(trace))
        return live

    # One run

    def _opened(self, desk: Desk) -> tuple[View, Values]:
        run_id, history = desk.view.run_id, self._history
        trace = history.trace(desk.who, run_id)
        beside, page = self._beside(desk)
        run = Opened(
            trace=trace,
            summary=self._known(desk.who, run_id) if trace.status != "running" else None,
            mine=history.owns(desk.who, run_id),
            parent=self._known(desk.who, trace.parent.run_id) if trace.parent else None,
            children=tuple(history.children(desk.who, run_id)),
            beside=beside,
            collection=self._title(desk.who, trace.config.get("collection")),
        )
        head = trace_cards.run_head(run, now=self._now(), focus=desk.view.focus)
        values = _showing(head=head)
        if run.summary is not None:
            values |= self._shown_below(run, run.summary)
        return replace(desk.view, page=page), values

    def _shown_below(self, run: Opened, summary: RunSummary) -> Values:
        """What only a run that has ended has: its detail, and what can be done with it."""
        return {
            "run_id": run.trace.run_id,
            "link": trace_cards.share_card(
                run.trace.run_id,
                by_link=self._startup.settings.access != "shared",
                shared=summary.shared,
                mine=run.mine,
            ),
            "formats": trace_cards.export_buttons(run.trace.run_id, formats()),
        }

    def _title(self, who: Visitor, name: object) -> str:
        with suppress(SpecragError):  # deleted since, or none of theirs
            return self._startup.parts.library.shelf(who, name).title if isinstance(name, str) else ""
        return ""

    def _known(self, who: Visitor, run_id: str) -> RunSummary | None:
        with suppress(TraceError):
            return self._history.summary(who, run_id)
        return None

    def _beside(self, desk: Desk) -> tuple[Neighbours, int]:
        """The runs before and after in the list as it was left, and the page that the run is on."""
        for page in dict.fromkeys((desk.view.page, desk.view.page + 1, desk.view.page - 1, 1)):
            start = (page - 1) * SHOWN
            if start < 0:
                continue
            before = min(start, 1)
            rows, _ = self._history.find(
                desk.who, desk.wanted, limit=SHOWN + before + 1, offset=start - before
            )
            ids = [row.run_id for row in rows]
            if desk.view.run_id in ids[before : before + SHOWN]:
                return neighbours(ids, desk.view.run_id), page
        return Neighbours(), desk.view.page

    # Two runs

    def _compared(self, desk: Desk, pair: tuple[str, str]) -> Values:
        before, after = (self._trace(desk.who, run_id) for run_id in pair)
        return _showing(diff=diff_card(diff_runs(before, after), now=self._now(), focus=desk.view.focus))

    def _trace(self, who: Visitor, run_id: str) -> Trace:
        return self._history.trace(who, run_id)


def _showing(*, runs: str = "", head: str = "", diff: str = "") -> Values:
    """One of the three; the detail of a run that was opened before goes with it."""
    return {"runs": runs, "head": head, "diff": diff, "run_id": ""}
