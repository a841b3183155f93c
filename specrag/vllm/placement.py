"""Which part of a machine each server gets: GPUs and shares of their memory, or cores.

The verifier takes the first GPUs, each drafter one of the rest; without a rest they share the last.
"""

from collections import Counter

from specrag.errors import UsageError
from specrag.vllm.choice import Choice
from specrag.vllm.flags import Hardware
from specrag.vllm.machine import share_cores

ALONE = 0.85
"""Of a GPU: logits of whole prompts are not in what vLLM measures at its start, so some must stay free."""
SHARED = (0.25, 0.6)
"""Drafter and verifier on one GPU."""


def place(choice: Choice) -> tuple[Hardware, ...]:
    """A place for every server, drafters first.

    Raises:
        UsageError: the verifier wants more GPUs than there are, or shares of a GPU are more than all of it.
    """
    if choice.device == "cpu":
        return _on_cpu(choice)
    if not choice.gpus:  # planned for another machine, or for one machine each
        return _on_unknown_gpus(choice)
    return _on_gpus(choice)


def _on_cpu(choice: Choice) -> tuple[Hardware, ...]:
    if choice.tensor_parallel > 1:
        raise UsageError("--tensor-parallel divides a model among GPUs; leave it away for --device cpu.")
    shares = share_cores(choice.cores, choice.drafters + choice.verifiers)
    return tuple(Hardware(device="cpu", cache_gib=choice.cache_gib, cores=share) for share in shares)


def _on_unknown_gpus(choice: Choice) -> tuple[Hardware, ...]:
    drafter, verifier = choice.memory or (None, ALONE)
    return (
        *(Hardware(device="gpu", memory=drafter) for _ in range(choice.drafters)),
        *(Hardware(device="gpu", memory=verifier) for _ in range(choice.verifiers)),
    )


def _on_gpus(choice: Choice) -> tuple[Hardware, ...]:
    wanted = choice.tensor_parallel * choice.verifiers
    if wanted > len(choice.gpus):
        raise UsageError(
            f"--tensor-parallel {wanted} needs {wanted} GPUs and this machine has {len(choice.gpus)} to use."
        )
    rest = choice.gpus[wanted:] or (choice.gpus[wanted - 1],)
    homes = [rest[number % len(rest)] for number in range(choice.drafters)]
    drafter, verifier = _memory(choice, most=max(Counter(homes).values(), default=0), wanted=wanted)
    return (
        *(Hardware(device="gpu", gpus=(home,), memory=drafter) for home in homes),
        *(
            Hardware(device="gpu", gpus=choice.gpus[:wanted], memory=verifier)
            for _ in range(choice.verifiers)
        ),
    )


def _memory(choice: Choice, *, most: int, wanted: int) -> tuple[float | None, float]:
    """Shares for a drafter and the verifier, where `most` drafters have one GPU."""
    with_verifier = most > 0 and wanted == len(choice.gpus)
    drafter: float | None
    if choice.memory is not None:
        drafter, verifier = choice.memory
    elif with_verifier:
        drafter, verifier = _part(SHARED[0], most), SHARED[1]
    else:
        drafter, verifier = _part(ALONE, most) if most > 1 else None, ALONE
    if (drafter or 0) * most + (verifier if with_verifier else 0) > 1:
        raise UsageError("--gpu-memory: the shares of servers on one GPU are more than all of it.")
    return drafter, verifier


def _part(memory: float, servers: int) -> float:
    return int(memory / servers * 100) / 100
