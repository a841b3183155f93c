"""What the scores of a draft are called and what they mean: one word for each, wherever the page says it."""

from typing import Final

SCORES: Final[dict[str, str]] = {
    "draft": "draft",
    "self_containment": "self-containment",
    "self_reflection": "self-reflection",
    "grounded": "groundedness",
    "relevance": "relevance",
    "combined": "combined",
}
"""By their names in `Scores`, in the order in which they are shown."""
MEANING: Final[dict[str, str]] = {
    "draft": "how probable the drafter finds what it wrote, given its passages",
    "self_containment": "how probable the verifier finds answer and rationale, given the question alone",
    "self_reflection": "how probable the verifier finds “Yes” to whether the rationale supports the answer",
    "grounded": "how probable the verifier finds the draft when it reads the passages too",
    "relevance": "how near the best evidence sentence of the subset is to the question",
    "combined": "their geometric mean, by the weights of the run",
}
