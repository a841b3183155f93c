"""What this machine has to run servers with: a Python that has vLLM, GPUs, cores, free ports."""

import errno
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path

from specrag.errors import ModelError, UsageError

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


def find_gpus() -> tuple[str, ...]:
    """The NVIDIA GPUs that this process may use, by the names that CUDA_VISIBLE_DEVICES takes.

    That variable is followed as CUDA does: numbers or UUIDs, and the first that does not exist ends the list.
    """
    told = _listing()
    count = sum(line.startswith("GPU ") for line in told.splitlines())
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is None:
        return tuple(map(str, range(count)))

    def is_there(name: str) -> bool:
        return int(name) < count if name.isdecimal() else bool(name) and f"UUID: {name}" in told

    return tuple(dict.fromkeys(takewhile(is_there, (name.strip() for name in given.split(",")))))


def _listing() -> str:
    """What `nvidia-smi -L` says of GPUs and their parts; empty where no driver answers."""
    if (tool := shutil.which("nvidia-smi")) is None:
        return ""
    try:
        told = subprocess.run(  # noqa: S603 - found on the path, with fixed words
            [tool, "-L"], capture_output=True, text=True, timeout=_ASK_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return told.stdout if told.returncode == 0 else ""


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


def ensure_free(host: str, port: int) -> None:
    """Make sure that a server can listen there.

    Raises:
        UsageError: something listens there already, or `host` is no address of this machine.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError) as error:
        raise UsageError(
            f"--host {host} is neither an address nor a name that this machine knows."
        ) from error
    with socket.socket(family, kind) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port just left is not taken
        try:
            probe.bind(address)
        except OSError as error:
            raise UsageError(_refusal(error, host, port)) from error


def _refusal(error: OSError, host: str, port: int) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"Port {port} of {host} is taken; give --drafter-port or --verifier-port another one."
        case errno.EADDRNOTAVAIL:
            return f"--host {host} is not an address of this machine."
        case _:
            return f"Nothing can listen on port {port} of {host} ({error.strerror})."
