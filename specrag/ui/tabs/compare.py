"""The Compare tab: one question, two to four pipelines, side by side on one clock.

Layout and wiring only; what happens is in `compare_events.py`. A comparison lives on the server, so this tab
follows it by its id, which is part of the address (`?compare=`).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import gradio as gr

from specrag.fairness import COLUMNS
from specrag.library.library import SAMPLE
from specrag.library.shelves import SAMPLE_TITLE
from specrag.prices import EXAMPLE, EXAMPLE_MACHINE
from specrag.startup import Startup
from specrag.ui import compare_cards as cards
from specrag.ui.choice import Choice
from specrag.ui.options import PIPELINES
from specrag.ui.tabs.ask import AskTab
from specrag.ui.tabs.compare_events import Events
from specrag.ui.tabs.compare_results import Results

TAB: Final = "compare"
ON_LOAD: Final = (Path(__file__).parents[1] / "compare.js").read_text(encoding="utf-8")
_CHOSEN: Final = ("standard", "speculative")
_REMEMBER: Final = """(id) => {
  const url = new URL(window.location);
  if ((url.searchParams.get("compare") || "") === id) return;
  if (id) {
    url.searchParams.set("compare", id);
    for (const other of ["run", "trace"]) url.searchParams.delete(other);
  } else url.searchParams.delete("compare");
  window.history.replaceState(null, "", url);
}"""
_KINDS: Final = (("By tokens", "tokens"), ("By machine time", "machine"), ("No cost", "none"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareTab:
    """The components that events read and write."""

    place: gr.Tab
    question: gr.Textbox
    go: gr.Button
    stop: gr.Button
    collection: Choice
    chosen: gr.CheckboxGroup
    how: gr.HTML
    message: gr.HTML
    status: gr.HTML
    race: gr.HTML
    columns: gr.HTML
    table: gr.HTML
    bars: gr.Column
    """What the plot and its table stand in, while there is something to show."""
    plot: gr.Plot
    steps: gr.HTML
    kind: gr.Radio
    tokens: tuple[gr.Textbox, ...]
    machine: gr.Textbox
    price_message: gr.HTML
    recent: gr.HTML
    comparison: gr.Textbox
    """Id of the comparison on the page."""
    ended: gr.Textbox
    """The same once it has ended, and so its numbers can be drawn."""

    @property
    def prices(self) -> list[Any]:
        """What the prices are typed into, in the order of `Results.price`."""
        return [self.kind, *self.tokens, self.machine]


def build(startup: Startup) -> CompareTab:
    """Lay the tab out, within the tabs of the page."""
    with gr.Tab("Compare", id=TAB) as place, gr.Column(elem_id="sr-compare"):
        with gr.Row(elem_id="sr-compare-row"):
            question = gr.Textbox(
                placeholder="Ask one question of several pipelines",
                label="Question to compare",
                show_label=False,
                lines=1,
                max_lines=6,
                max_length=startup.settings.max_question_characters + 1,
                elem_id="sr-compare-question",
                scale=6,
            )
            stop = gr.Button("Stop", elem_id="sr-compare-stop", interactive=False, scale=0, min_width=88)
            go = gr.Button("Compare", variant="primary", elem_id="sr-compare-go", scale=0, min_width=104)
        with gr.Row(elem_id="sr-compare-scope"):
            collection = Choice(
                choices=[(SAMPLE_TITLE, SAMPLE)],
                value=SAMPLE,
                label="Collection",
                elem_id="sr-compare-collection",
                scale=0,
                min_width=260,
            )
            chosen = gr.CheckboxGroup(
                choices=[(PIPELINES[name], name) for name in COLUMNS],
                value=list(_CHOSEN),
                label="Pipelines, two to four",
                elem_id="sr-compare-pipelines",
                scale=1,
                min_width=260,
            )
        how = gr.HTML(cards.how_note(""), elem_id="sr-compare-how", apply_default_css=False)
        message = gr.HTML(elem_id="sr-compare-message", apply_default_css=False)
        status = gr.HTML(cards.status_line(""), elem_id="sr-compare-status", apply_default_css=False)
        race = gr.HTML(cards.idle(), elem_id="sr-compare-race", apply_default_css=False)
        columns = gr.HTML(elem_id="sr-compare-columns", apply_default_css=False)
        table = gr.HTML(elem_id="sr-compare-table", apply_default_css=False)
        with gr.Accordion("Prices, for the cost of 1,000 questions", open=False, elem_id="sr-compare-prices"):
            kind, tokens, machine, price_message = _prices()
        with gr.Column(elem_id="sr-compare-bars", visible=False) as bars:
            plot = gr.Plot(elem_id="sr-compare-plot", label="Where the time went", show_label=False)
            steps = gr.HTML(elem_id="sr-compare-steps", apply_default_css=False)
        recent = gr.HTML(elem_id="sr-compare-recent", apply_default_css=False)
        comparison = gr.Textbox(visible="hidden", elem_id="sr-compare-id", label="Comparison")
        ended = gr.Textbox(visible="hidden", elem_id="sr-compare-ended", label="Ended comparison")
    return CompareTab(
        place=place,
        question=question,
        go=go,
        stop=stop,
        collection=collection,
        chosen=chosen,
        how=how,
        message=message,
        status=status,
        race=race,
        columns=columns,
        table=table,
        bars=bars,
        plot=plot,
        steps=steps,
        kind=kind,
        tokens=tokens,
        machine=machine,
        price_message=price_message,
        recent=recent,
        comparison=comparison,
        ended=ended,
    )


def _prices() -> tuple[gr.Radio, tuple[gr.Textbox, ...], gr.Textbox, gr.HTML]:
    """The boxes that prices are typed into; which of them are shown follows the kind, by compare.css."""
    kind = gr.Radio(choices=list(_KINDS), value="tokens", label="Pay", elem_id="sr-price-kind")
    read = ("drafter reads", "drafter writes", "verifier reads", "verifier writes")
    example = (
        EXAMPLE.drafter_read,
        EXAMPLE.drafter_written,
        EXAMPLE.verifier_read,
        EXAMPLE.verifier_written,
    )
    with gr.Row(elem_id="sr-price-tokens"):
        tokens = tuple(
            _price(f"$ per million tokens: {label}", f"{price:g}", f"sr-price-{label.replace(' ', '-')}")
            for label, price in zip(read, example, strict=True)
        )
    with gr.Row(elem_id="sr-price-machine"):
        machine = _price("$ per hour of the machine", f"{EXAMPLE_MACHINE.per_hour:g}", "sr-price-hour")
    message = gr.HTML(elem_id="sr-price-message", apply_default_css=False)
    return kind, tokens, machine, message


def _price(label: str, value: str, elem_id: str) -> gr.Textbox:
    return gr.Textbox(value=value, label=label, elem_id=elem_id, max_length=40, max_lines=1, min_width=160)


def wire(
    page: gr.Blocks, tab: CompareTab, startup: Startup, act: gr.Textbox, *, asking: AskTab, tabs: gr.Tabs
) -> None:
    """Connect the events.

    Args:
        page: the whole page.
        tab: the tab.
        startup: prepares the parts.
        act: the channel of `acts`.
        asking: the Ask tab, whose options hold here as well.
        tabs: all tabs, so that a link to a comparison opens this one.
    """
    events = Events(startup, tab, tabs)
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    page.load(None, None, None, js=ON_LOAD, api_visibility="private")
    page.load(events.load, None, events.live, **quiet)
    starting: dict[str, Any] = {
        "fn": events.compare,
        "inputs": [tab.question, tab.collection, tab.chosen, *asking.how.inputs],
        "outputs": events.live,
        **quiet,
    }
    tab.go.click(**starting)
    tab.question.submit(**starting)
    tab.stop.click(events.stop, tab.comparison, None, **quiet)
    act.input(events.act, [act, tab.comparison], events.live, trigger_mode="multiple", **quiet)
    look = [tab.question, asking.question, asking.collection, tab.collection]
    tab.place.select(events.look, [*look, *asking.how.inputs], events.looked, **quiet)
    tab.comparison.change(None, tab.comparison, None, js=_REMEMBER, api_visibility="private")
    results = Results(startup, tab)
    tab.ended.change(results.numbers, [tab.ended, *tab.prices], results.outputs, **quiet)
    gr.on(
        # their input event knows nothing of what is pasted or erased
        [tab.kind.input, *(box.change for box in (*tab.tokens, tab.machine))],
        results.price,
        [tab.ended, *tab.prices],
        [tab.table, tab.price_message],
        trigger_mode="always_last",
        **quiet,
    )
