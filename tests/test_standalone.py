"""The run as one HTML file: it says what the page says, asks for nothing, and keeps hostile texts texts."""

import re
from dataclasses import replace

import pytest

from specrag.tracing.trace import Trace, fold
from specrag.types import Exchange, Prompt
from specrag.ui.cards import answer_card
from specrag.ui.standalone import standalone
from tests.golden.record import events as golden_events
from tests.ui_html import read
from tests.ui_runs import MULTIHOP, RUNS, STANDARD
from tests.ui_traces import FAILED, HOSTILE, HOSTILE_TRACE, SELECTED, STATES

_LOADS = {"src", "srcset", "data", "action", "background", "poster", "ping", "formaction"}


@pytest.mark.parametrize("name", sorted({**STATES, **RUNS}))
def test_every_run_is_sound_html_that_loads_nothing(name: str) -> None:
    trace: Trace = {**STATES, **RUNS}[name]
    elements = read(standalone(trace))
    tags = [element.tag for element in elements]
    assert tags[0] == "html"
    assert tags.count("title") == tags.count("main") == tags.count("h1") == 1
    assert not {"script", "iframe", "object", "embed", "base", "form", "img", "svg"} & set(tags)
    for element in elements:
        assert not _LOADS & set(element.attributes)
        assert not [name for name in element.attributes if name.startswith("on")]
        if element.tag == "link":
            assert element.attributes == {"rel": "icon", "href": "data:,"}
        if element.tag == "style":
            assert not re.search(r"url\(|@import|expression|@font-face", element.text)
    policy = next(e for e in elements if e.attributes.get("http-equiv") == "Content-Security-Policy")
    assert policy.attributes["content"].startswith("default-src 'none'; style-src 'unsafe-inline'")
    ids = [element.attributes["id"] for element in elements if "id" in element.attributes]
    assert len(ids) == len(set(ids)), "a popover would open another one's panel"
    opened = {
        element.attributes["popovertarget"] for element in elements if "popovertarget" in element.attributes
    }
    assert opened <= set(ids)


async def test_it_shows_what_the_page_shows() -> None:
    trace = fold(await golden_events())
    text = read(standalone(trace))[0].text
    assert trace.question in text
    assert trace.answer is not None
    assert trace.answer.text in text
    assert trace.decision is not None
    assert trace.decision.reason in text
    for passage in trace.passages:
        assert passage.title in text
        assert passage.text in text
    for draft in trace.drafts:
        assert draft.answer in text
        assert draft.scores.combined is not None
        assert f"{draft.scores.combined:.2f}" in text
    assert "Where the time went" in text
    assert f"{trace.usage.drafter.completion_tokens:,}" in text


def test_the_pieces_are_those_of_the_page() -> None:
    """A copy of its own would go its own ways."""
    assert answer_card(SELECTED, scope="file") in standalone(SELECTED)


def test_the_other_pipelines_and_ends_are_shown_too() -> None:
    assert "Standard RAG" in read(standalone(STANDARD))[0].text
    hops = read(standalone(MULTIHOP))[0].text
    assert all(hop.query in hops for hop in MULTIHOP.hops)
    assert FAILED.error is not None
    assert FAILED.error.message in read(standalone(FAILED))[0].text


def test_conversation_rewriting_prompts_and_settings_can_be_unfolded() -> None:
    trace = replace(
        SELECTED,
        rewritten="How long may a visiting boat stay at the quay?",
        earlier=(Exchange(question="Where may boats stay?", answer="At the north quay."),),
        prompts=(Prompt(role="verifier", step="verify", text="<|im_start|>Is it so?", tokens=1234),),
        config={"drafts": 4, "weights": {"draft": 1.0}},
        environment={"versions": {"torch": "2.13.0"}},
        created_at="2026-03-01T12:30:00+02:00",
    )
    text = read(standalone(trace))[0].text
    for said in (
        "Asked as: How long may a visiting boat",
        "Where may boats stay?",
        "At the north quay.",
        "<|im_start|>Is it so?",
        "1,234 tokens",
        'weights {"draft": 1.0}',
        "torch 2.13.0",
        "2026-03-01 10:30 UTC",
    ):
        assert said in " ".join(text.split()).replace("weights{", "weights {").replace("torch2", "torch 2")


def test_hostile_texts_stay_texts() -> None:
    trace = replace(
        HOSTILE_TRACE,
        rewritten=HOSTILE,
        created_at=HOSTILE,
        config={"</style><script>alert(1)</script>": HOSTILE, "drafter": HOSTILE},
        environment={"versions": HOSTILE, "models": HOSTILE},
        earlier=(Exchange(question=HOSTILE, answer="</details></main></style>"),),
        prompts=(Prompt(role="verifier", step=HOSTILE, text="</pre><style>*{}</style>" + HOSTILE, tokens=1),),
    )
    html = standalone(trace)
    elements = read(html)
    assert "<script" not in html
    assert "{{" not in html
    assert "\u202e" not in html
    assert [element.tag for element in elements].count("style") == 1
    for element in elements:
        assert not element.attributes.get("href", "").startswith("javascript")


def test_dark_follows_the_system_and_what_needs_the_server_is_hidden() -> None:
    html = standalone(SELECTED)
    assert "@media (prefers-color-scheme: dark) { :root {" in html
    assert not re.search(r"^\.dark", html, re.MULTILINE)
    assert "[data-sr-action]:not([popovertarget]) { display: none !important; }" in html
