"""Runs as files: one leaves in some format, another comes from a file that anybody may have made."""

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from specrag.errors import SpecragError, UsageError
from specrag.startup import Startup
from specrag.tracing.export.bounds import BYTES
from specrag.tracing.export.formats import EXPORTS, Export, ExportFormat
from specrag.tracing.export.importing import import_run
from specrag.ui import acts, cards
from specrag.ui.exporting import export_run
from specrag.ui.tabs.exports import file_name, folder_for
from specrag.ui.tabs.traces_desk import Desk, Outcome

_STARTING: Final = "The program is still starting; choose the file again in a moment."


def formats() -> list[tuple[str, str]]:
    """Every format with what people call it."""
    known: Mapping[ExportFormat, Export] = EXPORTS
    return [(name, export.label) for name, export in known.items()]


class RunFiles:
    """The handlers. Which runs a visitor may read is the history's to say."""

    def __init__(self, startup: Startup) -> None:
        self._startup = startup
        self.acts = {"run-export": self._export}

    def take(self, desk: Desk, file: object) -> Outcome:
        """Keep the run in a file as this visitor's, and open it; gradio's copy is deleted at once."""
        if not isinstance(file, str):
            return Outcome(desk=desk)
        path = Path(file)
        try:
            if not self._startup.state.ready:
                raise UsageError(_STARTING)
            with path.open("rb") as stream:
                data = stream.read(BYTES + 1)
            trace, events = import_run(data)
            run_id = self._startup.parts.history.add(desk.who, trace, events)
        except SpecragError as error:
            message = cards.notice("error", f"{path.name[:80]}: {error}")
            return Outcome(desk=desk, message=message, values={"import_": None})
        finally:
            path.unlink(missing_ok=True)
        message = cards.notice("success", f"The run of {path.name[:80]} was imported.")
        opened = desk.turned(run_id=run_id, opened=True, pair=None)
        return Outcome(desk=opened, message=message, values={"import_": None})

    def _export(self, desk: Desk, act: acts.Act) -> Outcome:
        name = next((known for known in EXPORTS if known == act.value), None)
        if name is None:
            raise UsageError(f"There is no such format; choose one of {', '.join(EXPORTS)}.")
        history = self._startup.parts.history
        trace, events = history.trace(desk.who, act.id), history.events(desk.who, act.id)
        if trace.status == "running":
            raise UsageError("This run still goes on; export it when it has ended.")
        data = export_run(trace, events, name, texts=desk.texts)
        plain = file_name(f"specrag-{trace.run_id}", "specrag-run")
        path = folder_for(desk.who) / f"{plain}{'' if desk.texts else '-without-texts'}{EXPORTS[name].suffix}"
        path.write_bytes(data)
        holds = (
            "It holds the question, the passages and the answer" if desk.texts else "It holds figures only"
        )
        message = cards.notice("success", f"{path.name} is saved by your browser. {holds}.")
        return Outcome(desk=desk, message=message, values={"export": str(path), "exported": uuid.uuid4().hex})
