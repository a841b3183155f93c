"""The judge's part of the report for a person: who it was, what it said, and whether to trust it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from specrag.evaluation.cells import code, number, plain, table

COUNTS: Final = {"asked": "asked", "unread": "unread", "unheard": "not reached"}
VERDICTS: Final = ("correct", "incorrect", "declined")
NOTES: Final = """\
`judged` is 1 where the judge finds that an answer says what an accepted one says; of a question that the
passages do not answer, where it finds the answer declines. A run that failed scores 0 and is not judged. A
reply that cannot be read counts as unread and not as wrong. Agreement is between the judge's verdict and a
`score` that counts as right; kappa takes off what luck alone would give: 1 is full agreement, 0 is luck.
Agreement beyond luck is called shown where the interval lies above 0 and Fisher's exact test, over no more
answers than questions, gives 5 % or less. It does not say which of the two is right: where they differ, look
at the answers.
"""
"""What the figures of the section mean."""
RAGAS: Final = """\
`faithfulness` is that of RAGAS: the share of an answer's statements that the passages bear out, as the judge
divides and finds them. Answers that decline state nothing and are left out.
"""
FAITHFULNESS: Final = "faithfulness"
_NAMES: Final = 5
"""Names under which a model answered that are told."""


def judge_words(found: Mapping[str, Any] | None) -> Iterator[str]:
    """The section of the report; nothing if nobody judged."""
    if found is None:
        return
    yield "## The judge"
    yield _head(found)
    yield _verdicts(found)
    yield NOTES
    yield trust_words(found["agreement"])
    if len(found["datasets"]) > 1:
        yield _by_dataset(found["datasets"])
    if FAITHFULNESS in found["marks"]:
        yield RAGAS
        yield _counts(found, FAITHFULNESS)


def trust_words(one: Mapping[str, Any]) -> str:
    """What the agreement allows one to say."""
    if one["kappa"] is None or one["share"] is None:
        return f"Over {one['n']:,} answers kappa has no value: the judge or the score says the same of all."
    said = f"Over {one['n']:,} answers judge and score agree on {one['share']:.0%}; kappa is {_kappa(one)}"
    if one["kappa"]["clear"]:
        return f"{said}."
    return f"{said}, so no agreement beyond luck is shown."


def kappa_words(kappa: Mapping[str, Any]) -> tuple[str, str]:
    """It and its interval: no difference, so without a plus."""
    return f"{kappa['mean']:.3f}", f"{kappa['low']:.3f} to {kappa['high']:.3f}"


def about(found: Mapping[str, Any], shown: Callable[[str], str] = str) -> Iterator[str]:
    """How the judge was asked and at which cost; `shown` makes names fit for where they stand.

    Nothing of a report from outside that does not tell.
    """
    if not found["marks"] or found["tokens"] is None:
        return
    names = found["answered_as"]
    said = "temperature 0" if found["temperature"] == 0 else "at its own temperature, which cannot be set"
    if names:
        more = f" and {len(names) - _NAMES:,} more" if len(names) > _NAMES else ""
        said = f"{said}, answering as {', '.join(map(shown, names[:_NAMES]))}{more}"
    yield said
    asked = ", ".join(shown(mark["by"]) for mark in found["marks"].values())
    yield f"asked: {asked} (what follows the first word is the version)"
    tokens = found["tokens"]
    lost = tokens["uncounted"]
    uncounted = f", without {lost:,} replies that were not counted" if lost else ""
    yield f"tokens: {tokens['prompt']:,} read, {tokens['completion']:,} written{uncounted}"


def _head(found: Mapping[str, Any]) -> str:
    first, *others = about(found, plain)
    lines = [f"judge: {code(str(found['model']))}, {first}", *others]
    if found["problem"]:
        lines.append(f"ended early: {plain(found['problem'])}")
    return "\n".join(f"- {line}" for line in lines)


def _verdicts(found: Mapping[str, Any]) -> str:
    return table(
        ["pipeline", *COUNTS.values(), *VERDICTS, "agreement with score", "kappa"],
        (
            [
                code(name),
                *_columns(one["marks"]["judged"]),
                *(str(one["verdicts"][word]) for word in VERDICTS),
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
    return table(["pipeline", *COUNTS.values()], rows)


def _columns(one: Mapping[str, int]) -> list[str]:
    return [str(one[name]) for name in COUNTS]


def _kappa(one: Mapping[str, Any]) -> str:
    return "{} ({})".format(*kappa_words(one["kappa"])) if one["kappa"] else ""
