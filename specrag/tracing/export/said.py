"""What went into a step and what came out, in OpenInference's words.

A model's step names its model, what it was sent, what it wrote and how many tokens that was, as far as the
trace knows; tokens of a role that has only one such step are all of its own.
"""

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

from specrag.tracing.trace import Trace
from specrag.types import Draft, Passage, Prompt, Role, RoleUsage, Scores, Span

_WRITES_ANSWER: Final = ("answer", "fallback", "synthesise")
_LIMITS: Final = {
    "answer": "answer_tokens",
    "fallback": "fallback_tokens",
    "synthesise": "synthesis_tokens",
    "note": "note_tokens",
    "rewrite": "query_tokens",
}
"""Settings that bound what a step writes."""


def said_of(trace: Trace, span: Span) -> dict[str, Any]:  # noqa: PLR0911 - one case per step
    """The attributes of one step; unknown ones are None."""
    match span.name:
        case "retrieve":
            return {**_into(_query(trace, span)), **_documents(trace, span)}
        case "embed":
            embedder = trace.config.get("embedder")
            name = embedder if isinstance(embedder, str) else None
            return {"embedding.model_name": name, "embedding.embeddings.0.embedding.text": trace.asked}
        case "rerank":
            reranker = trace.config.get("reranker")
            name = reranker if isinstance(reranker, str) else None
            return {"reranker.query": trace.asked, "reranker.model_name": name}
        case "partition":
            lines = (f"{one.id}: {one.perspective} ({len(one.passage_ids)})" for one in trace.subsets)
            return {**_into(trace.asked), **_out_of("\n".join(lines))}
        case "draft" if "subset_id" in span.attributes:
            subset_id = span.attributes["subset_id"]
            drafts = (draft for draft in trace.drafts if draft.subset_id == subset_id)
            return next((_draft(trace, draft) for draft in drafts), {})
        case "verify":
            return {**_model(trace, "verifier"), **_sent(trace, span, "verifier"), **_verdicts(trace)}
        case "decide":
            return {**_into(trace.asked), **_out_of(trace.decision.reason if trace.decision else None)}
        case "answer" | "fallback" | "synthesise" | "note" | "rewrite":
            return _written(trace, span)
        case _:
            return {}


def _into(text: str | None) -> dict[str, Any]:
    return {"input.value": text, "input.mime_type": "text/plain" if text else None}


def _out_of(text: str | None) -> dict[str, Any]:
    return {"output.value": text, "output.mime_type": "text/plain" if text else None}


def _hop_number(trace: Trace, span: Span) -> int | None:
    """The place of the hop that a step belongs to."""
    hops = [other.id for other in trace.spans if other.name == "hop"]
    return hops.index(span.parent_id) if span.parent_id in hops else None


def _query(trace: Trace, span: Span) -> str:
    number = _hop_number(trace, span)
    return trace.asked if number is None or number >= len(trace.hops) else trace.hops[number].query


def _documents(trace: Trace, span: Span) -> dict[str, Any]:
    number = _hop_number(trace, span)
    found: tuple[Passage, ...] = trace.passages
    if number is not None and number < len(trace.hops):
        ids = trace.hops[number].passage_ids
        found = tuple(passage for passage in trace.passages if passage.id in ids)
    made: dict[str, Any] = {}
    for place, passage in enumerate(found):
        about = {
            name: value
            for name in ("title", "source", "page", "section", "published_at", "document_id")
            if (value := getattr(passage, name)) not in (None, "")
        }
        prefix = f"retrieval.documents.{place}.document"
        made[f"{prefix}.id"] = passage.id
        made[f"{prefix}.content"] = passage.text
        made[f"{prefix}.score"] = passage.score
        made[f"{prefix}.metadata"] = json.dumps(about, ensure_ascii=False)
    return made


def _model(trace: Trace, role: Role) -> dict[str, Any]:
    name = trace.config.get(role)
    return {"llm.model_name": name if isinstance(name, str) else None, "specrag.role": role}


def _messages(sent: str | None, wrote: str | None) -> dict[str, Any]:
    made = {**_into(sent), **_out_of(wrote)}
    if sent:
        made |= {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": sent}
    if wrote:
        made["llm.output_messages.0.message.role"] = "assistant"
        made["llm.output_messages.0.message.content"] = wrote
    return made


def _tokens(read: int | None, wrote: int | None) -> dict[str, Any]:
    return {
        "llm.token_count.prompt": read,
        "llm.token_count.completion": wrote,
        "llm.token_count.total": None if read is None else read + (wrote or 0),
    }


def _draft(trace: Trace, draft: Draft) -> dict[str, Any]:
    limit = [trace.config.get(name) for name in ("rationale_tokens", "answer_tokens")]
    scores = {f"specrag.score.{one.name}": getattr(draft.scores, one.name) for one in fields(Scores)}
    wrote = "\n".join(part for part in (draft.rationale, draft.answer) if part)
    perspective = next((one.perspective for one in trace.subsets if one.id == draft.subset_id), None)
    return {
        **_model(trace, "drafter"),
        **_messages(draft.prompt, wrote),
        **_tokens(draft.prompt_tokens, len(draft.tokens)),
        "llm.invocation_parameters": json.dumps({"max_tokens": sum(n for n in limit if isinstance(n, int))}),
        "llm.finish_reason": draft.finish_reason,
        "specrag.perspective": perspective,
        "specrag.rationale": draft.rationale,
        "specrag.answer": draft.answer,
        "specrag.abstained": draft.abstained,
        **scores,
    }


def _verdicts(trace: Trace) -> dict[str, Any]:
    """The scores of all drafts, as one text."""
    names = [one.name for one in fields(Scores)]
    rows = {
        draft.subset_id: {name: value for name in names if (value := getattr(draft.scores, name)) is not None}
        for draft in trace.drafts
    }
    return {"output.value": json.dumps(rows), "output.mime_type": "application/json"}


def _sent(trace: Trace, span: Span, role: Role) -> dict[str, Any]:
    """What a step of a role was sent, and the tokens of it."""
    prompts = _prompts(trace, span)
    alone = len(list(_steps(trace, role))) == 1
    read = _used(trace, role).prompt_tokens if alone else sum(one.tokens for one in prompts) or None
    text = "\n\n".join(prompt.text for prompt in prompts)
    return {**_messages(text, None), **_tokens(read, _completion(trace, span, role))}


def _used(trace: Trace, role: Role) -> RoleUsage:
    return trace.usage.drafter if role == "drafter" else trace.usage.verifier


def _prompts(trace: Trace, span: Span) -> list[Prompt]:
    """Prompts of this step; where it is done several times and was sent one prompt each time, its own."""
    alike = [other.id for other in trace.spans if other.name == span.name]
    sent = [prompt for prompt in trace.prompts if prompt.step == span.name]
    about = span.attributes.get("draft")
    if about is not None:
        return [prompt for prompt in sent if prompt.draft == about]
    return [sent[alike.index(span.id)]] if len(alike) == len(sent) else sent


def _steps(trace: Trace, role: Role) -> Iterator[Span]:
    """The steps in which a role reads something."""
    for span in trace.spans:
        if span.name == "draft":
            reads = role == "drafter" and "subset_id" in span.attributes
        else:
            reads = span.name in ("verify", "note", "rewrite", *_WRITES_ANSWER) and _role(trace, span) == role
        if reads:
            yield span


def _role(trace: Trace, span: Span) -> Role:
    """Who works in a step: its attribute says it, or what was sent in it."""
    if "role" in span.attributes:
        return "drafter" if span.attributes["role"] == "drafter" else "verifier"
    return next((prompt.role for prompt in trace.prompts if prompt.step == span.name), "verifier")


def _completion(trace: Trace, span: Span, role: Role) -> int | None:
    """Tokens that a step wrote; a trace keeps those of drafts and of the answer, and the sum of all."""
    known = {one.id: _counted(trace, one) for one in _steps(trace, role)}
    if known.get(span.id) is not None:
        return known[span.id]
    if [count for count in known.values() if count is None] != [None]:
        return None
    rest = _used(trace, role).completion_tokens - sum(count or 0 for count in known.values())
    return rest if rest >= 0 else None


def _counted(trace: Trace, span: Span) -> int | None:
    match span.name:
        case "verify":
            return 0
        case "draft":
            subset_id = span.attributes.get("subset_id")
            return sum(len(draft.tokens) for draft in trace.drafts if draft.subset_id == subset_id)
        case "answer" | "fallback" | "synthesise" if trace.answer_tokens:
            return len(trace.answer_tokens)
        case _:
            return None


def _written(trace: Trace, span: Span) -> dict[str, Any]:
    role = _role(trace, span)
    limit = trace.config.get(_LIMITS[span.name])
    sent = _sent(trace, span, role)
    return {
        **_model(trace, role),
        **sent,
        **_messages(sent["input.value"], _text(trace, span)),
        "llm.invocation_parameters": json.dumps({"max_tokens": limit}) if isinstance(limit, int) else None,
    }


def _text(trace: Trace, span: Span) -> str | None:
    """What a step wrote."""
    if span.name == "rewrite":
        return trace.rewritten
    if span.name == "note":
        number = _hop_number(trace, span)
        return None if number is None or number >= len(trace.hops) else trace.hops[number].note
    return trace.answer.text if trace.answer else None
