"""What a benchmark says in words, for Markdown and page alike: times, verdicts, floors and assumptions."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from specrag.evaluation.bootstrap import LEVEL
from specrag.evaluation.latency.spread import FEWEST

RATIO: Final = f"standard / speculative ({LEVEL * 100:g} %)"
HINT: Final = "Of so few repetitions it is a hint and not a finding."
_MILLION: Final = 1e6
_SECOND_MS: Final = 1000
_NEARLY_MS: Final = 999.5
"""From here on a time in whole milliseconds would be a second of them."""
_LONG_S: Final = 10
"""Seconds from which hundredths tell nothing."""


def ms(milliseconds: float, *, long: bool | None = None) -> str:
    """Milliseconds, or seconds from one second on; `long` asks for one of the two."""
    if milliseconds >= _NEARLY_MS if long is None else long:
        seconds = milliseconds / _SECOND_MS
        return f"{seconds:,.1f} s" if seconds >= _LONG_S else f"{seconds:.2f} s"
    return f"{milliseconds:,.0f} ms" if milliseconds >= 1 else f"{milliseconds:.1f} ms"


def ms_spread(spread: Mapping[str, float]) -> str:
    """A median with its least and greatest, all in one unit; of one run there is no more than the one."""
    if spread["n"] == 1:
        return ms(spread["median"])
    long = spread["high"] >= _NEARLY_MS
    median, low, high = (ms(spread[name], long=long) for name in ("median", "low", "high"))
    return f"{median} ({low} to {high})"


def conditions(found: Mapping[str, Any]) -> str:
    """What was run, and how often."""
    lengths, models = found["lengths"], found["models"]
    sizes = models["size_ratio"]
    return (
        f"{lengths['passages']} passages of {lengths['passage_tokens']} tokens; {lengths['drafts']} drafts "
        f"of {lengths['per_draft']} passages each. Standard RAG writes {lengths['tokens']} tokens, and so "
        f"does every draft ({lengths['rationale']} of them its rationale). {_repetitions(found)} in "
        f"turn after {found['warmups']} to warm up"
        + (f"; the verifier is {sizes:.1f} times the drafter's size." if sizes else ".")
    )


def _repetitions(found: Mapping[str, Any]) -> str:
    return f"{found['repeats']} repetition{'s' * (found['repeats'] != 1)}"


def interval_words(found: Sequence[float]) -> str:
    """The ends of a ratio's interval."""
    return f"{found[0]:.2f} to {found[1]:.2f}"


def size_words(parameters: float) -> str:
    """How large a verifier is."""
    return f"{parameters / _MILLION:,.0f} million"


def verdict(found: Mapping[str, Any]) -> str:
    """What both ratios say, also where they say that it does not pay."""
    if is_few(found):
        return (
            f"There are too few repetitions to say which way is faster: {found['repeats']}, and it takes "
            f"{FEWEST} at least."
        )
    said = [_faster(found["ratio"][f"{key}_interval"]) for key in ("total", "ttft")]
    return f"At these sizes and lengths, to the whole answer {said[0]}; to its first token {said[1]}."


def is_few(found: Mapping[str, Any]) -> bool:
    """Whether there are too few repetitions for a verdict."""
    return bool(found["repeats"] < FEWEST)


def _faster(interval: Sequence[float] | None) -> str:
    low, high = interval or (1.0, 1.0)  # a report from outside may lack what its repetitions promise
    if low > 1:
        return "speculative RAG is faster"
    return "speculative RAG is slower: it does not pay" if high < 1 else "neither is shown to be faster"


def floor_words(floor: Mapping[str, Any] | None) -> str:
    """What the floor is, and what the ratio would be by it alone; of too little work there is none."""
    if not floor:
        return "What a server computes is its own to know, so there is no floor."
    machine, ratio = floor["machine"], floor["ratio"]
    said = (
        "The floor is the least time that the operations and bytes of a phase take on this machine, which "
        f"does {machine['matrix_gflops']:.0f} GFLOP/s in an fp32 matrix product and reads "
        f"{machine['memory_gb_s']:.1f} GB/s."
    )
    if ratio["ttft"] is None or ratio["total"] is None:
        return said
    return (
        f"{said} By the floor alone the ratio would be {ratio['ttft']:.2f} to the first token and "
        f"{ratio['total']:.2f} in all."
    )


def energy_words(energy: Mapping[str, Any]) -> str:
    """What a question took of the processor, as far as the system tells."""
    if energy["standard_j"] is None or energy["speculative_j"] is None:
        return f"Energy: {energy['note']}" if energy["note"] else ""
    return (
        f"Energy of one question: {energy['standard_j']:.0f} J standard, {energy['speculative_j']:.0f} J "
        f"speculative. {energy['note']}"
    )


def saved_words(one: Mapping[str, Any]) -> str:
    """The share of a cost that is saved."""
    return f"{one['saved']:.0%}".replace("-", "\N{MINUS SIGN}")


def assumed(costs: Sequence[Mapping[str, Any]]) -> list[str]:
    """All that the costs assume, each once."""
    return list(dict.fromkeys(line for one in costs for line in one["assumes"]))


def numbers_of(one: Mapping[str, Any], lines: Sequence[str]) -> str:
    """Which of the lines a cost assumes, by the numbers that they have in `assumption_words`."""
    return ", ".join(str(lines.index(line) + 1) for line in one["assumes"])


def assumption_words(lines: Sequence[str]) -> tuple[str, ...]:
    """What is assumed, numbered."""
    return tuple(f"{number}. {line[:1].upper()}{line[1:]}." for number, line in enumerate(lines, 1))


def even_words(even: Mapping[str, Any]) -> str:
    """Where the curves cross 1."""
    whole, first = (_even(even[key]) for key in ("total", "ttft"))
    return f"Break-even for the whole answer: {whole}; for the first token: {first}."


def _even(value: float | None) -> str:
    return "none among these sizes" if value is None else f"{value:.1f} times the drafter's size"


def method_words(even: Mapping[str, Any]) -> str:
    """How the break-even was found."""
    return f"The break-even is read off {even['method']}." if even["method"] else ""


def place_words(environment: Mapping[str, Any]) -> str:
    """The machine that computed; of servers, what they are and what they were asked from."""
    versions = ", ".join(f"{name} {number}" for name, number in environment["versions"].items())
    machine = f"{environment['cores']} cores of {environment['processor']}"
    if environment["servers"]:
        servers = ", ".join(f"{role}: {served}" for role, served in environment["servers"].items())
        return f"Computed by servers ({servers}), asked from {machine}; {versions}."
    count = environment["threads"]
    threads = f", {count} thread{'s' * (count > 1)}" if count else ""
    return f"Measured on {machine}{threads}; {versions}."
