"""What happens when a visitor does something in the Evaluate tab.

Names of reports and files come from anywhere: the shelf checks the first, bounded readers the second. Who may
start an evaluation is asked each time, since a hidden form stops nobody.
"""

import asyncio
import itertools
import re
import uuid
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import gradio as gr

from specrag.errors import SpecragError, UsageError
from specrag.evaluation.reading import Report
from specrag.evaluation.trials import Trial, Trials
from specrag.startup import Startup
from specrag.ui import evaluate_cards as cards
from specrag.ui import evaluating
from specrag.ui.acts import parse
from specrag.ui.cards import notice
from specrag.ui.tabs.evaluate_reports import drawn, read_upload, saved
from specrag.ui.who import visitor_of

if TYPE_CHECKING:
    from specrag.ui.tabs.evaluate import EvaluateTab

Updates: TypeAlias = dict[Any, Any]
SAMPLE: Final = "sample"
FILE: Final = "file"
TICK_S: Final = 0.5
_UPLOADED: Final = "uploaded"
"""What stands for the name of a report that is not on the shelf."""
_PAGES: Final = 1000


class Events:
    """The handlers."""

    def __init__(self, startup: Startup, tab: "EvaluateTab") -> None:
        self._startup = startup
        self._tab = tab
        self._turns = itertools.count(1)
        self._latest: OrderedDict[str, tuple[int, bool]] = OrderedDict()
        """What each open page follows, and whether it waits for an end that it was not told of.

        Whatever it followed before ends by itself.
        """

    @property
    def outputs(self) -> list[Any]:
        """What most events may write to."""
        tab = self._tab
        slots = (part for slot in tab.slots for part in (slot.words, slot.plot, slot.tables))
        controls = [tab.file, tab.go, tab.status, tab.message, tab.progress]
        return [*controls, tab.kept, tab.upload, tab.saved, tab.saving, tab.head, *slots, tab.rest, tab.shown]

    async def load(self, request: gr.Request) -> AsyncGenerator[Updates]:
        """A page that comes back follows the evaluation that is under way."""
        async with aclosing(self._follow(request)) as updates:
            async for update in updates:
                yield update

    async def look(self, request: gr.Request, shown: object) -> AsyncGenerator[Updates]:
        """The tab was opened: the newest report, unless one is on the page, and what is under way."""
        kept = await asyncio.to_thread(self._startup.parts.shelf.kept, self._owner(request))
        name = shown if isinstance(shown, str) and shown else ""
        if name or not kept or not self._startup.state.ready:
            yield {self._tab.kept: cards.kept(kept, name)}
        else:
            yield await self._opened(request, kept[0].name, focus=False)
        async with aclosing(self._follow(request)) as updates:
            async for update in updates:
                yield update

    async def run(
        self, request: gr.Request, source: object, file: object, chosen: object, limit: object
    ) -> AsyncGenerator[Updates]:
        """Start an evaluation and follow it."""
        tab = self._tab
        try:
            await asyncio.to_thread(self._start, request, source, file, chosen, limit)
        except SpecragError as error:
            said = notice("error", str(error))
            yield {tab.file: None, tab.message: said, tab.status: cards.status_line(str(error))}
            return
        yield {tab.file: None, tab.message: ""}
        async with aclosing(self._follow(request, started=True)) as updates:
            async for update in updates:
                yield update

    def _stop(self, request: gr.Request, shown: str) -> Updates:
        """Stop the evaluation of this number, if it is the visitor's; whoever follows it sees its end."""
        who = visitor_of(request, self._startup.settings)
        number = int(shown) if re.fullmatch(r"[0-9]{1,9}", shown) else 0
        if not (self._startup.state.ready and evaluating.stop(self._startup.parts, who, number)):
            return {self._tab.status: gr.skip()}
        return {self._tab.status: cards.status_line("The evaluation is being stopped.")}

    async def act(self, request: gr.Request, text: object) -> Updates:
        """Open one of the kept reports, or stop what is under way."""
        act = parse(text)
        match act.action if act else "":
            case "evaluate-open" if act:
                opened = await self._opened(request, act.id)
                return {**opened, self._tab.status: cards.status_line("")}  # it tells of the one before
            case "evaluate-save" if act:
                return await asyncio.to_thread(self._save, request, act.id, act.value)
            case "evaluate-stop" if act:
                return self._stop(request, act.id)
            case _:
                return {self._tab.status: gr.skip()}

    async def upload(self, request: gr.Request, file: object) -> Updates:
        """Show a report from a file, on this page only."""
        tab = self._tab
        try:
            report = await asyncio.to_thread(read_upload, file)
        except SpecragError as error:
            return {tab.message: notice("error", str(error)), tab.upload: None}
        said = notice("info", "The report of your file is shown on this page only; it is not kept.")
        return {
            **await asyncio.to_thread(drawn, tab, report, focus=f"upload-{next(self._turns)}"),
            tab.message: said,
            tab.status: cards.status_line(cards.shown(Path(str(file)).name)),  # it tells of the one before
            tab.shown: _UPLOADED,
            tab.upload: None,  # or gradio does not tell of the same file a second time
            tab.kept: cards.kept(
                await asyncio.to_thread(self._startup.parts.shelf.kept, self._owner(request)), ""
            ),
        }

    def _start(
        self, request: gr.Request, source: object, file: object, chosen: object, limit: object
    ) -> None:
        sent = Path(file) if isinstance(file, str) else None
        path = sent if source == FILE else None
        try:
            if not self._startup.state.ready:
                raise UsageError("The program is still starting; evaluate again in a moment.")
            if source == FILE and path is None:
                raise UsageError("Choose a file of questions first.")
            who = visitor_of(request, self._startup.settings)
            evaluating.start(
                self._startup.parts, who, path, chosen if isinstance(chosen, list) else (), limit
            )
        finally:
            if sent is not None:  # anybody could fetch it by its address
                sent.unlink(missing_ok=True)

    async def _follow(self, request: gr.Request, *, started: bool = False) -> AsyncGenerator[Updates]:
        """Updates until the evaluation that is under way has ended, then its report.

        The end of one that has ended already is told if this page was waiting for it, or has `started` it.
        """
        tab, owner = self._tab, self._owner(request)
        session, turn = str(request.session_hash), next(self._turns)
        waits = started or self._latest.get(session, (0, False))[1]
        self._remember(session, turn, waits=waits)
        sent: Updates = {}
        while (trial := self._trials.newest if self._trials else None) is not None:
            if self._latest.get(session, (0, False))[0] != turn:
                return
            if trial.ended and not waits:
                yield {tab.progress: "", tab.go: gr.update(interactive=True)}
                return
            waits = not trial.ended
            self._remember(session, turn, waits=waits)
            now = self._shown(trial, owner)
            news = {key: value for key, value in now.items() if sent.get(key) != value}
            yield news or {tab.status: gr.skip()}
            sent |= now
            if trial.ended:
                break
            await asyncio.sleep(TICK_S)
        if trial is None:
            yield {tab.status: gr.skip()}  # gradio needs something to send
        elif trial.owner == owner:
            if trial.report:
                yield await self._opened(request, trial.report)
            if trial.error:
                yield {tab.message: notice("error", trial.error)}

    def _shown(self, trial: Trial, owner: str) -> Updates:
        tab, mine = self._tab, trial.owner == owner
        return {
            tab.status: cards.status_line(cards.status(trial, mine=mine)),
            tab.progress: cards.progress(trial, mine=mine),
            tab.go: gr.update(interactive=trial.ended),
        }

    async def _opened(self, request: gr.Request, name: str, *, focus: bool = True) -> Updates:
        tab, owner = self._tab, self._owner(request)
        kept = await asyncio.to_thread(self._startup.parts.shelf.kept, owner)
        try:
            report = await asyncio.to_thread(self._report, request, name)
        except SpecragError as error:
            return {tab.message: notice("error", str(error)), tab.kept: cards.kept(kept, "")}
        wants = f"opened-{next(self._turns)}" if focus else ""
        return {
            **await asyncio.to_thread(drawn, tab, report, focus=wants),
            tab.message: "",
            tab.shown: name,
            tab.kept: cards.kept(kept, name),
        }

    def _report(self, request: gr.Request, name: str) -> Report:
        if not self._startup.state.ready:
            raise UsageError("The program is still starting; open the report in a moment.")
        who = visitor_of(request, self._startup.settings)
        return evaluating.report_of(self._startup.parts, who, name)

    def _save(self, request: gr.Request, name: str, form: str) -> Updates:
        """A kept report as a file that the browser saves."""
        tab = self._tab
        try:
            report = self._report(request, name)
        except SpecragError as error:
            return {tab.message: notice("error", str(error))}
        path = saved(report, form, visitor_of(request, self._startup.settings))
        said = f"{path.name} is saved by your browser."
        return {tab.saved: str(path), tab.saving: uuid.uuid4().hex, tab.message: notice("success", said)}

    def _remember(self, session: str, turn: int, *, waits: bool) -> None:
        self._latest[session] = turn, waits
        self._latest.move_to_end(session)
        while len(self._latest) > _PAGES:
            self._latest.popitem(last=False)

    def _owner(self, request: gr.Request) -> str:
        """Whose evaluations these are; empty where they are everybody's."""
        return evaluating.owner_of(visitor_of(request, self._startup.settings))

    @property
    def _trials(self) -> Trials | None:
        """None until the program has started."""
        return self._startup.parts.trials if self._startup.state.ready else None
