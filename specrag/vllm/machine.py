"""What this machine has to run servers with: a Python that has vLLM, GPUs, cores, free ports."""

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from specrag.errors import ModelError

ENVIRONMENT = ".venv-vllm"
"""Where scripts/vllm_environment.sh puts vLLM."""

MAKE_ENVIRONMENT = "make an environment for it with scripts/vllm_environment.sh, or name one with --python"
_ASK_S = 20.0


def find_python(given: Path | None = None) -> Path | None:
    """The interpreter that has vLLM: the given one, this one, or that of `.venv-vllm`; None if there is none.

    Raises:
        ModelError: the given one is not there.
    """
    if given is not None:
        found = shutil.which(given.expanduser())
        if found is None:
            raise ModelError(f"{given} is not a Python that can be run; {MAKE_ENVIRONMENT}.")
        return Path(found).absolute()
    if importlib.util.find_spec("vllm") is not None:
        return Path(sys.executable)
    # Not resolved: an environment is known by the link that it is called through.
    own = Path(ENVIRONMENT, "bin", "python").absolute()
    return own if own.exists() else None


def count_gpus() -> int:
    """How many NVIDIA GPUs answer; 0 where there is no driver."""
    if (tool := shutil.which("nvidia-smi")) is None:
        return 0
    try:
        told = subprocess.run(  # noqa: S603 - found on the path, with fixed words
            [tool, "-L"], capture_output=True, text=True, timeout=_ASK_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return sum(line.startswith("GPU ") for line in told.stdout.splitlines()) if told.returncode == 0 else 0


def cores() -> tuple[int, ...]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # macOS has no such thing
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def share_cores(available: tuple[int, ...], servers: int) -> tuple[tuple[int, ...], ...]:
    """Cores for each of several servers: equal parts, or nothing when there are fewer cores than servers."""
    each = len(available) // servers
    return tuple(available[number * each : (number + 1) * each] for number in range(servers))


def free_ports(count: int, host: str = "127.0.0.1") -> tuple[int, ...]:
    """Ports that nobody listens on at this moment, all different."""
    with ExitStack() as held:
        listening = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in listening:
            one.bind((host, 0))
        return tuple(int(one.getsockname()[1]) for one in listening)


def is_taken(host: str, port: int) -> bool:
    """Whether something listens there already."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port just left is not taken
        try:
            probe.bind((host, port))
        except OSError:
            return True
    return False
