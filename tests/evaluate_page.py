"""The Evaluate tab over toy models, with what a page shows."""

import json
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import gradio as gr

from specrag.build import Parts
from specrag.config import load_settings
from specrag.models.scripted import ScriptedModel
from specrag.startup import Startup, StartupState
from specrag.ui.tabs import evaluate
from specrag.ui.tabs.evaluate_events import Events
from specrag.ui.who import COOKIE
from tests.evaluation_rig import write
from tests.toys import WordEmbedder

QUESTION = {
    "id": "q1",
    "question": "How long does a full charge take?",
    "answers": ["5 hours"],
    "passages": [
        {"title": "Charging", "text": f"A full charge takes 5 hours in test {n}."} for n in range(5)
    ],
}


class Rig:
    """The tab over toy models, with what a page shows."""

    def __init__(self, home: Path, access: str = "shared") -> None:
        login = {"login": "ada:secret"} if access == "login" else {}
        settings = load_settings({}, home=home, access=access, **login)
        self.startup = Startup(settings)
        model = ScriptedModel(write)
        self.startup.parts = Parts(settings, in_memory=True, drafter=model, verifier=model)
        self.startup.parts.__dict__["embedder"] = WordEmbedder()
        self.startup._set(StartupState(message="Ready", ready=True))
        self.shelf = self.startup.parts.shelf
        with gr.Blocks(), gr.Tabs():
            self.tab = evaluate.build(self.startup)
        self.events = Events(self.startup, self.tab)
        self.page: dict[Any, Any] = {}

    async def do(self, told: AsyncIterator[dict[Any, Any]] | Awaitable[dict[Any, Any]]) -> dict[Any, Any]:
        """The page after an event, whose updates are all of components that it may write to."""
        updates: list[dict[Any, Any]] = []
        if isinstance(told, AsyncIterator):
            updates += [update async for update in told]
        else:
            updates.append(await told)
        assert updates, "an event without an answer empties the whole tab"
        for update in updates:
            assert set(update) <= set(self.events.outputs)
            self.page |= update
        return self.page

    async def act(self, action: str, identity: str = "", value: str = "") -> dict[Any, Any]:
        told = json.dumps({"action": action, "id": identity, "value": value})
        return await self.do(self.events.act(request(), told))

    def shown(self, component: Any) -> str:
        return str(self.page.get(component, ""))


def request(session: str = "s1") -> gr.Request:
    asked = SimpleNamespace(cookies={COOKIE: "A" * 22}, client=SimpleNamespace(host="127.0.0.1"))
    return cast("gr.Request", SimpleNamespace(username=None, request=asked, session_hash=session))


def questions(folder: Path) -> str:
    """A file of one question, as it was uploaded."""
    path = folder / "bikes.jsonl"
    path.write_text(json.dumps(QUESTION))
    return str(path)
