"""What a server can do, found out by asking it once for what every run will need.

Log-probabilities of the tokens that it writes are needed of all. Those of a prompt are needed to score
drafts; a server without them is used for self-reflection only, and that is said. No version is trusted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from specrag.models.server import wire
from specrag.models.server.access import Access
from specrag.models.server.faults import Fault
from specrag.models.server.http import Http

PromptScores: TypeAlias = Literal["prompt_logprobs", "echo"]
"""How a server gives the log-probabilities of a prompt."""

COMPLETIONS = "completions"
LIKELIEST = 20
"""Tokens that vLLM gives at most at a position (`--max-logprobs`)."""
_UNKNOWN_CONTEXT = 4096
_IDS = (11, 12, 13, 14)
"""Token ids that every vocabulary has; the prompt need not mean anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What is known of one server."""

    model: str
    context: int
    engine: str
    """For people: "vLLM 0.32.0"."""
    prompt_scores: PromptScores | None
    chosen_ids: bool
    """It gives the log-probability of any token that is asked for, not of the likeliest only."""
    notes: tuple[str, ...] = ()
    """What is missing, one sentence each."""

    def scoring(self, prompts: Sequence[Sequence[int]], choice_ids: Sequence[int]) -> dict[str, Any]:
        """The body of a request that reads prompts and writes one token after each."""
        body = {**greedy(self.model), "prompt": [list(prompt) for prompt in prompts], "max_tokens": 1}
        if self.prompt_scores == "prompt_logprobs":
            body["prompt_logprobs"] = 0
        if self.prompt_scores == "echo":  # the prompt's tokens then come by their texts, which are shown
            body |= {"echo": True, "return_tokens_as_token_ids": False}
        body["logprobs"] = 1 if self.chosen_ids or not choice_ids else LIKELIEST
        if self.chosen_ids and choice_ids:
            body["logprob_token_ids"] = list(choice_ids)
        return body


def greedy(model: str) -> dict[str, Any]:
    """What every request has in common: the likeliest token, nothing put before the prompt, ids for text.

    Penalties are set because a server may take others from the model's own generation settings.
    """
    return {
        "model": model,
        "temperature": 0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "add_special_tokens": False,
        "return_tokens_as_token_ids": True,
    }


async def look(http: Http, access: Access, url: str) -> Abilities:
    """Find out what the server with this base URL can do.

    Raises:
        Fault: it cannot be used, or not now.
    """
    served = await _model(http, access, url)
    notes = []
    if served.context is None:
        notes.append(
            f"The {access.role}'s server does not tell its context; {_UNKNOWN_CONTEXT} tokens are assumed."
        )
    found = Abilities(
        model=served.name,
        context=served.context or _UNKNOWN_CONTEXT,
        engine=await _engine(http, url, served),
        prompt_scores="prompt_logprobs",
        chosen_ids=True,
    )
    scores, chosen = await _scores(http, url, found)
    if scores is None and access.role == "verifier":
        notes.append(
            "The verifier's server gives no log-probabilities of prompts, so drafts are scored by "
            "self-reflection only: self-containment and groundedness are unknown."
        )
    return Abilities(
        model=found.model,
        context=found.context,
        engine=found.engine,
        prompt_scores=scores,
        chosen_ids=chosen,
        notes=tuple(notes),
    )


async def _model(http: Http, access: Access, url: str) -> wire.Served:
    served = wire.models(await http.get(url, "models"), url)
    names = [model.name for model in served]
    if access.model in names:
        return served[names.index(access.model)]
    if (access.any_model or access.model is None) and len(served) == 1:
        return served[0]
    there = ", ".join(names[:5]) or "none"
    wanted = (
        f"choose one of {there}" if access.model is None else f"“{access.model}” is wanted and {there} served"
    )
    raise Fault("no_model", url, wanted)


async def _engine(http: Http, url: str, served: wire.Served) -> str:
    """Who answers; a server that does not say is an OpenAI-compatible one."""
    name = {"vllm": "vLLM", "sglang": "SGLang"}.get(served.owner.lower(), "OpenAI-compatible server")
    try:
        answer = await http.get(url, "/version")
    except Fault as fault:
        if fault.passing and fault.kind != "malformed":
            raise
        return name
    version = answer.get("version") if isinstance(answer, Mapping) else None
    return f"{name} {version[:40]}" if isinstance(version, str) else name


async def _scores(http: Http, url: str, able: Abilities) -> tuple[PromptScores | None, bool]:
    """How prompts are scored here, and whether tokens can be chosen: less is asked for until it works."""
    tries: list[tuple[PromptScores | None, bool]] = [
        ("prompt_logprobs", True),
        ("prompt_logprobs", False),
        ("echo", False),
        (None, False),
    ]
    refusal: Fault | None = None
    for scores, chosen in tries:
        asked = Abilities(
            model=able.model,
            context=able.context,
            engine=able.engine,
            prompt_scores=scores,
            chosen_ids=chosen,
        )
        prompts = (_IDS, _IDS[:3])
        try:
            answer = await http.post(url, COMPLETIONS, asked.scoring(prompts, _IDS[:1]))
            readings = wire.readings(answer, prompts, url, echoed=scores == "echo")
        except Fault as fault:
            if fault.kind not in ("rejected", "unable", "malformed"):
                raise
            refusal = refusal or fault
            continue
        if not all(reading.following for reading in readings):
            raise Fault("unable", url, "it returns no log-probabilities of the tokens that it writes")
        if scores is not None and any(reading.prompt is None for reading in readings):
            continue
        return scores, chosen and all(_IDS[0] in reading.following for reading in readings)
    raise refusal or Fault("unable", url, "it does not take prompts as token ids")
