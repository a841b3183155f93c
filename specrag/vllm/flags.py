"""What each server is told, and why: the flags and variables of vLLM that our drafting and scoring need.

All of them were looked up in vLLM 0.32. A flag that only repeats a default of that release is there because
scores depend on it, and another release may change its mind.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

Role: TypeAlias = Literal["drafter", "verifier"]
Device: TypeAlias = Literal["cpu", "gpu"]

VERIFIER_STEP_TOKENS = 4096
"""Tokens that a verifier on a GPU reads in a step: 16 drafts, the most of a question, of about 200 fit."""

CPU_STEP_TOKENS = 256
"""The same on a CPU: a step takes less than a second, and a request that is stopped ends with its
step, or the one scheduled behind it."""

MOST_LOGPROBS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """Words of the command line that belong together."""

    words: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable of the server's environment."""

    name: str
    value: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """The part of a machine that one server gets."""

    device: Device
    gpus: tuple[str, ...] = ()
    """Its GPUs, by number or UUID; empty leaves the choice to CUDA."""
    memory: float | None = None
    """Share of a GPU's memory, in (0, 1]; None leaves it to vLLM."""
    cache_gib: int = 1
    """Room for keys and values on a CPU."""
    cores: tuple[int, ...] = ()
    """Cores to bind to; empty leaves it to vLLM."""


def flags(
    role: Role,
    hardware: Hardware,
    *,
    max_model_len: int,
    dtype: str | None,
    quantization: str | None,
    tensor_parallel: int,
) -> tuple[Flag, ...]:
    """The flags of one server, without its model, name and address."""
    common = (
        _flag("--max-model-len", max_model_len, "prompt and answer together; all passages must fit"),
        _flag(
            "--generation-config", "vllm", "the model's own sampling defaults would change greedy decoding"
        ),
        _flag("--max-logprobs", MOST_LOGPROBS, "Yes and No are looked for among this many candidates"),
        *_of_role(role),
        *_of_device(role, hardware, dtype),
    )
    return (
        *common,
        *_optional(
            "--tensor-parallel-size", tensor_parallel if tensor_parallel > 1 else None, "GPUs for one model"
        ),
        *_optional("--quantization", quantization, "how the weights are quantised"),
    )


def variables(hardware: Hardware, *, local: bool) -> tuple[Variable, ...]:
    """The environment of one server, without its key."""
    made = [Variable(name="VLLM_NO_USAGE_STATS", value="1", reason="nothing is reported to anybody")]
    if local:
        made.append(Variable(name="HF_HUB_OFFLINE", value="1", reason="the weights lie in a folder"))
    match hardware.device:
        case "cpu":
            made.append(
                Variable(
                    name="VLLM_CPU_KVCACHE_SPACE",
                    value=str(hardware.cache_gib),
                    reason="GiB for keys and values; left alone, each server takes most of the memory",
                )
            )
            if hardware.cores:
                made.append(
                    Variable(
                        name="VLLM_CPU_OMP_THREADS_BIND",
                        value=",".join(map(str, hardware.cores)),
                        reason="its own cores; left alone, all servers bind to the same ones",
                    )
                )
        case "gpu":
            if hardware.gpus:
                made.append(
                    Variable(
                        name="CUDA_VISIBLE_DEVICES",
                        value=",".join(hardware.gpus),
                        reason="its own GPUs",
                    )
                )
        case _:
            assert_never(hardware.device)
    return tuple(made)


def _of_role(role: Role) -> tuple[Flag, ...]:
    match role:
        case "drafter":
            return (
                Flag(
                    words=("--enable-prefix-caching",),
                    reason="the instruction before every draft is the same: it is read once",
                ),
            )
        case "verifier":
            return (
                Flag(
                    words=("--no-enable-prefix-caching",),
                    reason="prompt log-probabilities may depend on what is cached (vllm#42019)",
                ),
            )
        case _:
            assert_never(role)


def _of_device(role: Role, hardware: Hardware, dtype: str | None) -> tuple[Flag, ...]:
    match hardware.device:
        case "cpu":
            return (
                _flag("--dtype", dtype or "float32", "bfloat16 is emulated, and slow, on many CPUs"),
                Flag(
                    words=("--enforce-eager",),
                    reason="nothing is compiled at the start",
                ),
                _flag(
                    "--max-num-batched-tokens",
                    CPU_STEP_TOKENS,
                    "a step, and so the end of a stopped request, takes less than a second",
                ),
            )
        case "gpu":
            step = VERIFIER_STEP_TOKENS if role == "verifier" else None
            return (
                *_optional("--dtype", dtype, "layout of the weights"),
                *_optional("--gpu-memory-utilization", hardware.memory, "its share of the GPU's memory"),
                *_optional("--max-num-batched-tokens", step, "all drafts of a question fit into one step"),
            )
        case _:
            assert_never(hardware.device)


def _optional(name: str, value: object, reason: str) -> tuple[Flag, ...]:
    return () if value is None else (_flag(name, value, reason),)


def _flag(name: str, value: object, reason: str) -> Flag:
    return Flag(words=(name, str(value)), reason=reason)
