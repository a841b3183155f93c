"""What servers answer, read strictly; the values are those that vLLM 0.32 sent."""

import math
from typing import Any

import pytest

from specrag.models.server import wire
from specrag.models.server.faults import Fault

URL = "http://a/v1"


def event(
    text: str, *tokens: tuple[str, float], ids: list[int] | None = None, **choice: Any
) -> dict[str, Any]:
    return {
        "choices": [
            {
                "index": 0,
                "text": text,
                "logprobs": {
                    "tokens": [token for token, _ in tokens],
                    "token_logprobs": [value for _, value in tokens],
                    "top_logprobs": [{token: value} for token, value in tokens],
                },
                "token_ids": ids,
                "finish_reason": None,
                **choice,
            }
        ]
    }


def scored(*own: tuple[int, float, str], following: dict[str, float] | None = None, index: int = 0) -> Any:
    return {
        "index": index,
        "text": ",",
        "logprobs": {
            "tokens": ["token_id:28"],
            "token_logprobs": [-0.88],
            "top_logprobs": [following if following is not None else {"token_id:28": -0.88}],
        },
        "prompt_logprobs": [
            None,
            *(
                {str(token): {"logprob": value, "rank": 9, "decoded_token": text}}
                for token, value, text in own
            ),
        ],
    }


def test_one_token_has_the_text_of_its_event() -> None:
    """Half a character has no text yet, whatever the token's own text is."""
    (token,) = wire.chunk(event("", ("\ufffd", -0.5), ids=[7]), URL)
    assert token == wire.Token(text="", logprob=-0.5, id=7)


def test_several_tokens_of_one_event_have_their_own_texts() -> None:
    tokens = wire.chunk(event(" I'm", (" I", -1.0), ("'m", -2.0), ids=[1, 2]), URL)
    assert [(token.text, token.id) for token in tokens] == [(" I", 1), ("'m", 2)]


def test_texts_that_do_not_add_up_lose_nothing() -> None:
    tokens = wire.chunk(event("é!", ("\ufffd", -1.0), ("\ufffd", -2.0), ("!", -3.0), ids=[1, 2, 3]), URL)
    assert "".join(token.text for token in tokens) == "é!"
    assert [token.logprob for token in tokens] == [-1.0, -2.0, -3.0]


@pytest.mark.parametrize("named", ["", "<|im_end|>"])
def test_the_end_of_a_turn_is_a_token_that_ends(named: str) -> None:
    tokens = wire.chunk(
        event("no", ("no", -1.0), (named, -0.1), ids=[1, 2], finish_reason="stop", stop_reason=None), URL
    )
    assert [(token.text, token.ends) for token in tokens] == [("no", False), ("", True)]
    assert tokens[1].logprob == -0.1


def test_an_end_that_is_not_among_the_tokens_still_ends() -> None:
    tokens = wire.chunk(event("no", ("no", -1.0), ids=[1], finish_reason="stop"), URL)
    assert [(token.text, token.ends) for token in tokens] == [("no", False), ("", True)]


def test_a_newline_stops_and_ends_nothing_but_its_line() -> None:
    (token,) = wire.chunk(event(".\n", (".\n", -1.0), ids=[1], finish_reason="stop", stop_reason="\n"), URL)
    assert (token.text, token.ends) == (".\n", False)


def test_an_event_that_only_counts_has_no_tokens() -> None:
    assert wire.chunk({"choices": [], "usage": {"prompt_tokens": 4}}, URL) == []


def test_infinite_and_tiny_probabilities_are_cut() -> None:
    (token,) = wire.chunk(event("a", ("a", -math.inf), ids=[1]), URL)
    assert token.logprob == -9999.0


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        ({}, "malformed"),
        ([], "malformed"),
        ("text", "malformed"),
        ({"choices": [{}]}, "malformed"),
        ({"choices": [{"text": "a"}]}, "unable"),
        (event("ab", ("a", -1.0), ids=[1, 2]), "malformed"),
        (event("a", ("a", -1.0), ids=7), "malformed"),  # type: ignore[arg-type]
        (event("a", ("a", -1.0), ids={"1": 2}), "malformed"),  # type: ignore[arg-type]
        (event("a", ("a", math.nan), ids=[1]), "malformed"),
        (event("a", ("a", None), ids=[1]), "malformed"),  # type: ignore[arg-type]
        (event("a", ("a", -1.0), finish_reason="abort"), "dropped"),
        ({"error": {"message": "engine is dead", "code": 500}}, "failed"),
        ({"error": "overloaded", "choices": []}, "failed"),
    ],
)
def test_a_broken_event_is_a_fault(broken: Any, kind: str) -> None:
    with pytest.raises(Fault) as caught:
        wire.chunk(broken, URL)
    assert caught.value.kind == kind


def test_a_prompt_is_read_by_its_own_tokens() -> None:
    """`prompt_logprobs` also holds likelier tokens; they stand beside, before or behind the own one."""
    choice = scored((5, -3.0, "b"), (6, -4.0, "c"), following={"token_id:28": -0.88, "token_id:504": -9.86})
    choice["prompt_logprobs"][1] = {
        "99": {"logprob": -0.1, "rank": 1, "decoded_token": "z"},
        **choice["prompt_logprobs"][1],
    }
    (reading,) = wire.readings({"choices": [choice]}, [(4, 5, 6)], URL)
    assert reading.prompt == (None, ("b", -3.0), ("c", -4.0))
    assert reading.following == {28: -0.88, 504: -9.86}


def test_choices_are_taken_by_their_index() -> None:
    answer = {"choices": [scored((8, -2.0, "y"), index=1), scored((5, -3.0, "b"), index=0)]}
    first, second = wire.readings(answer, [(4, 5), (7, 8)], URL)
    assert first.prompt == (None, ("b", -3.0))
    assert second.prompt == (None, ("y", -2.0))


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        # a server that puts its own token before the prompt moves every score by one place
        ({"choices": [scored((1, -1.0, "s"), (5, -3.0, "b"))]}, "unable", "reads 3 tokens where 2 were sent"),
        ({"choices": [scored((6, -3.0, "c"))]}, "malformed", "every token"),
        ({"choices": []}, "malformed", "one choice for each of 1"),
        ({"choices": [scored((5, -3.0, "b"), index=1)]}, "malformed", "one choice"),
        ({"choices": [scored((5, math.nan, "b"))]}, "malformed", "number"),
        (
            {"choices": [{**scored((5, -3.0, "b")), "prompt_logprobs": [None, {"5": -3.0}]}]},
            "malformed",
            "every token",
        ),
        ({"choices": [{**scored((5, -3.0, "b")), "prompt_logprobs": 3}]}, "unable", "no tokens"),
    ],
)
def test_a_reading_of_something_else_is_a_fault(answer: Any, kind: str, said: str) -> None:
    with pytest.raises(Fault) as caught:
        wire.readings(answer, [(4, 5)], URL)
    assert caught.value.kind == kind
    assert said in caught.value.detail


def test_an_echo_is_a_reading_as_well() -> None:
    choice = {
        "index": 0,
        "text": "ab,",
        "logprobs": {
            "tokens": ["a", "b", ","],
            "token_logprobs": [None, -3.0, -0.9],
            "top_logprobs": [None, {"x": -0.1}, {",": -0.9, " Yes": -2.0}],
        },
    }
    (reading,) = wire.readings({"choices": [choice]}, [(4, 5)], URL, echoed=True)
    assert reading.prompt == (None, ("b", -3.0))
    assert reading.following == {",": -0.9, " Yes": -2.0}


def test_a_server_that_says_nothing_of_prompts_leaves_them_unknown() -> None:
    choice = {**scored((5, -3.0, "b")), "prompt_logprobs": None}
    (reading,) = wire.readings({"choices": [choice]}, [(4, 5)], URL)
    assert reading.prompt is None


def test_models_have_their_names_and_contexts() -> None:
    answer = {"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 4096}, {"id": "n"}]}
    assert wire.models(answer, URL) == [
        wire.Served(name="m", context=4096, owner="vllm"),
        wire.Served(name="n", context=None, owner=""),
    ]
