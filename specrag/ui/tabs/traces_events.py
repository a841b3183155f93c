"""What happens when a visitor does something in the Traces tab.

Ids come from the page and are not believed: `History` says who may see, change and delete which run, and
refuses a run of somebody else's in the words of one that does not exist.
"""

import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import gradio as gr

from specrag.errors import SpecragError, UsageError
from specrag.startup import Startup
from specrag.tracing.history import History
from specrag.types import Rating
from specrag.ui import acts, cards
from specrag.ui.sentences import counted
from specrag.ui.tabs.traces_board import Board
from specrag.ui.tabs.traces_desk import Desk, Outcome, Turns, Values, View, number, ticked_of
from specrag.ui.trace_filter import filter_of, mark_of
from specrag.ui.who import visitor_of

OPEN: Final = "run-open"
"""Opens a run in this tab, from wherever on the page its button is."""
COMPARE: Final = "runs-compare"
"""The same for two runs: one is the id of the button, the other its value."""
TAB: Final = "traces"
_ASK: Final = "ask"
_PAIR: Final = 2

Handler: TypeAlias = Callable[[Desk, acts.Act], Outcome]


class Events:
    """The handlers; the inputs of all are those of `desk`."""

    def __init__(self, startup: Startup, others: Mapping[str, Handler]) -> None:
        """`others` are further acts by name, which are handled elsewhere."""
        self._startup = startup
        self._board = Board(startup)
        self._turns = Turns()
        self._acts: dict[str, Handler] = {
            **others,
            OPEN: self._open,
            "run-follow": self._follow,
            "run-newer": self._open,
            "run-older": self._open,
            "runs-back": self._back,
            "runs-page": self._page,
            "run-delete": self._delete,
            "runs-delete": self._delete_ticked,
            "runs-clear": self._clear,
            "run-rate-up": self._rate("up"),
            "run-rate-down": self._rate("down"),
            "run-share": self._share,
            "runs-compare-ticked": self._compare_ticked,
            COMPARE: self._compare,
        }

    @property
    def _history(self) -> History:
        return self._startup.parts.history

    def desk(self, inputs: tuple[Any, ...], request: gr.Request) -> Desk:
        """What came with an event, in the order in which the tab sends it."""
        wanted, ticked, texts, view = inputs
        return Desk(
            who=visitor_of(request, self._startup.settings),
            wanted=filter_of(wanted),
            ticked=ticked_of(ticked),
            view=view if isinstance(view, View) else View(),
            texts=not texts,
        )

    def draw(self, desk: Desk, message: str = "") -> tuple[View, Values]:
        """What is shown, as it is now."""
        return self._board.draw(desk, message)

    def look(self, desk: Desk) -> tuple[View, Values]:
        """The tab was chosen: its list is as old as the last look at it, an opened run stays as it is."""
        return self.draw(desk) if desk.view.at_list else (desk.view, {})

    def search(self, desk: Desk) -> tuple[View, Values]:
        """Other runs are wanted: the list begins at its first page."""
        return self.draw(desk.seen(page=1, run_id="", opened=False, pair=None))

    def act(self, desk: Desk, text: str) -> tuple[View, Values] | None:
        """Something done inside our own HTML; None if it is not of this tab."""
        act = acts.parse(text)
        if act is None or act.action not in self._acts or self._turns.is_repeated(act.turn):
            return None
        if not self._startup.state.ready:
            return self.draw(desk)
        try:
            outcome = self._acts[act.action](desk, act)
        except SpecragError as error:
            outcome = Outcome(desk=desk, message=cards.notice("error", str(error)))
        view, values = self.draw(outcome.desk, outcome.message)
        return view, values | dict(outcome.values)

    def linked(self, desk: Desk, run_id: str) -> tuple[View, Values]:
        """A run that is opened by its address."""
        desk = desk.turned(run_id=run_id, opened=True, pair=None)
        view, values = self.draw(desk)
        return view, {**values, **self._afresh(desk), "tab": TAB}

    def imported(self, outcome: Outcome) -> tuple[View, Values]:
        """What has come of a file."""
        view, values = self.draw(outcome.desk, outcome.message)
        afresh = self._afresh(outcome.desk) if view.opened else {}
        return view, {**values, **afresh, **outcome.values}

    def comment(self, desk: Desk, text: object) -> tuple[View, Values]:
        """A comment joins the rating of the opened run."""
        said = text if isinstance(text, str) else ""
        try:
            run = self._history.summary(desk.who, desk.view.run_id)
            if run.feedback is None:
                raise UsageError("Say first whether the answer was helpful; the comment goes with that.")
            self._history.rate(desk.who, run.run_id, run.feedback, said)
        except SpecragError as error:
            return self.draw(desk, cards.notice("error", str(error)))
        return self.draw(desk, cards.notice("success", "The comment was saved."))

    # Looking

    def _open(self, desk: Desk, act: acts.Act) -> Outcome:
        self._history.check_readable(desk.who, act.id)
        desk = desk.turned(run_id=act.id, opened=True, pair=None)
        return Outcome(desk=desk, values={"tab": TAB, **self._afresh(desk)})

    def _afresh(self, desk: Desk) -> Values:
        """What is sent only when another run is opened, since people change it afterwards."""
        run_id = desk.view.run_id
        return {"comment": self._comment_of(desk, run_id), "fill": (desk.who, run_id)}

    def _comment_of(self, desk: Desk, run_id: str) -> str:
        try:
            return self._history.summary(desk.who, run_id).comment
        except SpecragError:  # it goes on, or is none of theirs
            return ""

    def _follow(self, desk: Desk, act: acts.Act) -> Outcome:
        """Show a run that goes on where runs are followed."""
        self._history.check_readable(desk.who, act.id)
        show = f"{act.id} {uuid.uuid4().hex[:6]}"
        return Outcome(desk=desk, values={"show": show, "tab": _ASK})

    def _back(self, desk: Desk, _act: acts.Act) -> Outcome:
        return Outcome(desk=desk.turned(opened=False, pair=None))

    def _page(self, desk: Desk, act: acts.Act) -> Outcome:
        return Outcome(desk=desk.turned(page=max(1, number(act.value)), run_id=""))

    def _compare_ticked(self, desk: Desk, _act: acts.Act) -> Outcome:
        if len(desk.ticked) != _PAIR:
            raise UsageError("Tick exactly two runs to compare them.")
        # they were ticked in any order; the older one is what the newer one is compared with
        first, second = sorted(
            desk.ticked, key=lambda run_id: self._history.summary(desk.who, run_id).created_at
        )
        return Outcome(desk=desk.turned(pair=(first, second), opened=False))

    def _compare(self, desk: Desk, act: acts.Act) -> Outcome:
        for run_id in (act.id, act.value):
            self._history.check_readable(desk.who, run_id)
        desk = desk.turned(pair=(act.id, act.value), opened=False)
        return Outcome(desk=desk, values={"tab": TAB})

    # Changing

    def _delete(self, desk: Desk, act: acts.Act) -> Outcome:
        self._history.check_own(desk.who, act.id)
        question = self._history.question(desk.who, act.id)
        self._history.delete(desk.who, [act.id])
        message = cards.notice("success", f"The run “{question}” was deleted with its trace.")
        opened = desk.view.opened and desk.view.run_id != act.id
        return Outcome(desk=desk.turned(run_id="", opened=opened), message=message)

    def _delete_ticked(self, desk: Desk, _act: acts.Act) -> Outcome:
        gone = self._history.delete(desk.who, desk.ticked)
        message = cards.notice("success", f"{counted(gone, 'run')} deleted with the traces.")
        return Outcome(desk=desk.turned(run_id="", deleted=desk.view.deleted + 1), message=message)

    def _clear(self, desk: Desk, act: acts.Act) -> Outcome:
        if act.value != mark_of(desk.wanted):
            raise UsageError(
                "The search has changed meanwhile, so nothing was deleted; look at the list again."
            )
        gone = self._history.clear(desk.who, desk.wanted)
        message = cards.notice("success", f"{counted(gone, 'run')} deleted with the traces.")
        desk = desk.turned(page=1, run_id="", deleted=desk.view.deleted + 1)
        return Outcome(desk=desk, message=message)

    def _rate(self, rating: Rating) -> Handler:
        def rate(desk: Desk, act: acts.Act) -> Outcome:
            run = self._history.summary(desk.who, act.id)
            again = run.feedback == rating  # pressed once more, it is taken back
            self._history.rate(desk.who, act.id, None if again else rating, "" if again else run.comment)
            return Outcome(desk=desk)

        return rate

    def _share(self, desk: Desk, act: acts.Act) -> Outcome:
        self._history.share(desk.who, act.id, act.value == "on")
        said = (
            "Anybody with the link can see the run now." if act.value == "on" else "Only you can see it now."
        )
        return Outcome(desk=desk, message=cards.notice("success", said))
