"""The judge's part of the report for a person: who it was, what it said, and whether to trust it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from specrag.evaluation.cells import code, number, plain, table

_NOTES: Final = """\
`judged` is 1 where the judge finds that an answer says what an accepted one says; of a question that the
passages do not answer, where it finds the answer declines. A run that failed scores 0 and is not judged. A
reply that cannot be read counts as unread and not as wrong. Agreement is between the judge's verdict and a
`score` that counts as right; kappa takes off what luck alone would give: 1 is full agreement, 0 is luck.
Agreement beyond luck is called shown where the interval lies above 0 and Fisher's exact test, over no more
answers than questions, gives 5 % or less. It does not say which of the two is right: where they differ, look
at the answers.
"""
_RAGAS: Final = """\
`faithfulness` is that of RAGAS: the share of an answer's statements that the passages bear out, as the judge
divides and finds them. Answers that decline state nothing and are left out.
"""


def judge_words(found: Mapping[str, Any] | None) -> Iterator[str]:
    """The section of the report; nothing if nobody judged."""
    if found is None:
        return
    yield "## The judge"
    yield _head(found)
    yield _verdicts(found)
    yield _NOTES
    yield trust_words(found["agreement"])
    if len(found["datasets"]) > 1:
        yield _by_dataset(found["datasets"])
    if "faithfulness" in found["marks"]:
        yield _RAGAS
        yield _counts(found, "faithfulness")


def trust_words(one: Mapping[str, Any]) -> str:
    """What the agreement allows one to say."""
    if one["kappa"] is None:
        return f"Over {one['n']} answers kappa has no value: the judge or the score says the same of all."
    low, mean, high = (one["kappa"][name] for name in ("low", "mean", "high"))
    said = (
        f"Over {one['n']} answers judge and score agree on {one['share']:.0%}; "
        f"kappa is {mean:.3f} ({low:.3f} to {high:.3f})"
    )
    if one["kappa"]["clear"]:
        return f"{said}."
    return f"{said}, so no agreement beyond luck is shown."


def _head(found: Mapping[str, Any]) -> str:
    tokens = found["tokens"]
    uncounted = (
        f", without {tokens['uncounted']} replies that were not counted" if tokens["uncounted"] else ""
    )
    names = ", ".join(map(plain, found["answered_as"]))
    asked = ", ".join(plain(mark["by"]) for mark in found["marks"].values())
    heat = "temperature 0" if found["temperature"] == 0 else "at its own temperature, which cannot be set"
    lines = [
        f"- judge: {code(str(found['model']))}, {heat}" + (f", answering as {names}" if names else ""),
        f"- asked: {asked} (what follows the first word is the version)",
        f"- tokens: {tokens['prompt']} read, {tokens['completion']} written{uncounted}",
        f"- ended early: {plain(found['problem'])}" if found["problem"] else "",
    ]
    return "\n".join(line for line in lines if line)


def _verdicts(found: Mapping[str, Any]) -> str:
    heads = ["pipeline", "asked", "unread", "not reached", "correct", "incorrect", "declined"]
    return table(
        [*heads, "agreement with score", "kappa"],
        (
            [
                code(name),
                *_columns(one["marks"]["judged"]),
                *(str(one["verdicts"][word]) for word in ("correct", "incorrect", "declined")),
                number(one["agreement"]["share"]),
                _kappa(one["agreement"]),
            ]
            for name, one in found["pipelines"].items()
        ),
    )


def _by_dataset(datasets: Mapping[str, Any]) -> str:
    return table(
        ["file", "judged", "agreement with score", "kappa"],
        (
            [
                plain(name),
                str(one["agreement"]["n"]),
                number(one["agreement"]["share"]),
                _kappa(one["agreement"]),
            ]
            for name, one in datasets.items()
        ),
    )


def _counts(found: Mapping[str, Any], mark: str) -> str:
    rows = ([code(name), *_columns(one["marks"][mark])] for name, one in found["pipelines"].items())
    return table(["pipeline", "asked", "unread", "not reached"], rows)


def _columns(one: Mapping[str, int]) -> list[str]:
    return [str(one[name]) for name in ("asked", "unread", "unheard")]


def _kappa(one: Mapping[str, Any]) -> str:
    kappa = one["kappa"]
    return f"{kappa['mean']:.3f} ({kappa['low']:.3f} to {kappa['high']:.3f})" if kappa else ""
