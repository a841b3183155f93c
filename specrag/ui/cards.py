"""The page's HTML, piece by piece: pure functions from values to a string, markup in `templates/`.

Documents are hostile: everything that is shown passes the autoescape of one environment, and loses the
characters that could reorder or hide text on the way. Popovers are native (`popovertarget`), so there is no
script; their ids begin with a scope and the run, so that answer, chips and cards, which are re-sent on their
own while a run goes on, always point at the same panels, and one run can be shown in two tabs.
"""

import math
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from specrag.tracing.trace import Trace
from specrag.types import ModelInfo
from specrag.ui.draft_cards import cards_of, scrolls
from specrag.ui.hop_cards import hops_of
from specrag.ui.lanes import FAINT, KEYS, WORDS, lanes, ticks
from specrag.ui.markup import hue, render, score
from specrag.ui.proof import pieces_of
from specrag.ui.readout import (
    Colour,
    authors_of,
    id_prefix,
    is_direct,
    look_of,
    refs_of,
    sides_of,
    votes_of,
    winner_of,
)
from specrag.ui.score_names import MEANING, SCORES
from specrag.ui.sentences import headline, reader_text, rewriting_text, status_text, waiting_text
from specrag.ui.tally import figures_of
from specrag.ui.written import answer_text, answer_tokens

__all__ = [
    "Colour",
    "NoticeKind",
    "answer_card",
    "board",
    "empty_state",
    "loading",
    "models_line",
    "notice",
    "passages_strip",
    "status_line",
    "timeline",
]

NoticeKind: TypeAlias = Literal["info", "success", "warning", "error"]

_BLANKS, _MOST_BLANKS = 4, 16
_LIVE_AXIS_MS: Final = 1000.0
"""A live axis begins no shorter, or it would change its scale with every event."""


def models_line(drafter: ModelInfo, verifier: ModelInfo, collection: str, documents: int, chunks: int) -> str:
    """Who drafts, who verifies, and over what."""
    return render(
        "models",
        drafter=drafter,
        verifier=verifier,
        same=(drafter.name, drafter.parameters) == (verifier.name, verifier.parameters),
        notes=tuple(dict.fromkeys((*drafter.notes, *verifier.notes))),
        collection=collection,
        documents=documents,
        chunks=chunks,
    )


def status_line(trace: Trace | None, *, idle: str = "Ready.", sharing: int = 0) -> str:
    """The one line that a screen reader is told of; its text holds no running clock on purpose."""
    return render("status", text=idle if trace is None else status_text(trace, sharing=sharing))


def answer_card(trace: Trace, *, colour: Colour = "none", scope: str = "ask") -> str:
    """The answer with its reason, its sources and what it took."""
    refs = refs_of(trace, scope)
    answer, winner, authors = trace.answer, winner_of(trace), authors_of(trace)
    return render(
        "answer",
        trace=trace,
        look=look_of(trace),
        headline=headline(trace),
        rewriting=rewriting_text(trace),
        answer=answer_text(trace),
        tokens=() if colour == "none" else answer_tokens(trace, colour),
        colour=colour,
        winner=winner,
        cites=[refs.get(cited) for cited in answer.citations] if answer else [],
        authors=authors,
        strip=_strip(authors),
        sides=sides_of(trace, refs),
        votes=votes_of(trace, winner),
        figures=figures_of(trace),
    )


def _strip(authors: Sequence[int]) -> str:
    """The hues of the drafts that an answer rests on, as stops of a gradient, which needs two."""
    stops = [f"var(--sr-hue-{hue(number)})" for number in authors]
    return ", ".join(stops * 2 if len(stops) == 1 else stops)


def passages_strip(trace: Trace, *, scope: str = "ask", filed: bool = False) -> str:
    """Chips of the retrieved passages, and the panel that each of them opens.

    In a file (`filed`) no script opens the panel that a sentence leads to: it opens as the target of a link.
    """
    refs = tuple(refs_of(trace, scope).values())
    used = tuple(ref for ref in refs if ref.hues) or refs
    return render(
        "passages",
        refs=refs,
        used=used,
        rest=tuple(ref for ref in refs if ref not in used),
        more=f"{id_prefix(trace, scope)}-more",
        running=trace.status == "running" and not trace.ahead,
        chips=not trace.hops,
        note=trace.retrieval_note,
        marked={ref.target: pieces_of(trace, ref) for ref in refs},
        filed=filed,
    )


def board(trace: Trace, *, colour: Colour = "none", scope: str = "ask", tokens: bool = True) -> str:
    """How the answer comes about: a card per draft, the hops, or a line on which model reads what.

    Without `tokens` the cards of a finished run have no tables of them: twenty drafts would be slow to open.
    """
    if trace.ahead and trace.status == "running":
        return render("reader", text=waiting_text(trace), waiting=True)
    if trace.pipeline == "multihop":
        hops = hops_of(trace, refs_of(trace, scope))
        running = trace.status == "running"
        return render("hops", hops=hops, text=reader_text(trace), running=running)
    if is_direct(trace):
        return render("reader", text=reader_text(trace), waiting=False)
    return _draft_board(trace, colour=colour, scope=scope, tokens=tokens)


def _draft_board(trace: Trace, *, colour: Colour, scope: str, tokens: bool) -> str:
    cards = tuple(cards_of(trace, refs_of(trace, scope), colour))
    scored = [card.draft.scores for card in cards if card.draft]
    running = trace.status == "running"
    return render(
        "board",
        cards=cards,
        colour=colour,
        untold=[] if colour == "none" else [card.number for card in cards if card.untold],
        running=running,
        tables=tokens and not running,
        blanks=_drafts_asked(trace) if running and not cards else 0,
        note=trace.partition_note,
        labels={
            key: label for key, label in SCORES.items() if any(score(s, key) is not None for s in scored)
        },
        meaning=MEANING,
        scrolls=scrolls,
        decided=winner_of(trace) is not None,
    )


def _drafts_asked(trace: Trace) -> int:
    """How many drafts the run is to write, so that their places are kept; the trace may be from outside."""
    asked = trace.config.get("drafts")
    return min(max(asked, 1), _MOST_BLANKS) if isinstance(asked, int) else _BLANKS


def timeline(trace: Trace) -> str:
    """The lanes of the run, live; the same numbers stand in a table for those who cannot see them."""
    rows = lanes(trace)
    if not rows and trace.status != "running":
        return ""
    least = _LIVE_AXIS_MS if trace.status == "running" else 0.0
    axis = ticks(max([least, trace.elapsed_ms, *(bar.end_ms for row in rows for bar in row.bars)]))
    kinds = {bar.kind for row in rows for bar in row.bars}
    return render(
        "timeline",
        lanes=rows,
        ticks=axis,
        end=axis[-1],
        trace=trace,
        words=WORDS,
        faint=FAINT,
        key=[
            (alike[0], " or ".join(WORDS[kind] for kind in alike if kind in kinds))
            for alike in KEYS
            if kinds & set(alike)
        ],
    )


def empty_state(title: str, text: str, hints: Sequence[str] = ()) -> str:
    """What stands where nothing is yet, and what to do about it."""
    return render("empty", title=title, text=text, hints=hints)


def loading(progress: float | None, message: str) -> str:
    """The first start: `progress` is a share in [0, 1], None while unknown."""
    share = None if progress is None or math.isnan(progress) else min(1.0, max(0.0, progress))
    return render("loading", share=share, message=message)


def notice(kind: NoticeKind, text: str) -> str:
    """A sentence that needs attention; errors are announced at once."""
    return render("notice", kind=kind, text=text)
