"""`specrag vllm`: print the servers that a pair of models needs, or start them and stay until Ctrl-C."""

import signal
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from pydantic import SecretStr

from specrag.cli.common import Json, friendly, print_json
from specrag.config import Settings, load_settings, model_name
from specrag.errors import ModelError, UsageError
from specrag.models.weights import HUB_ID, Weights
from specrag.terminal import bar, say
from specrag.vllm.choice import Choice, Model
from specrag.vllm.flags import Device, Role
from specrag.vllm.machine import MAKE_ENVIRONMENT, cores, find_gpus, find_python
from specrag.vllm.plan import Plan, is_loopback, make_plan
from specrag.vllm.printed import as_dict, as_shell, exports
from specrag.vllm.servers import VllmServers

ModelName = Annotated[
    str | None, typer.Option(help="Embedded name, Hugging Face id or folder; the setting's by default.")
]
Port = Annotated[int, typer.Option(min=1, max=65535)]


def vllm(  # noqa: PLR0917 - typer calls it by name
    drafter: ModelName = None,
    verifier: ModelName = None,
    start: Annotated[bool, typer.Option("--start", help="Start them, and stop them at Ctrl-C.")] = False,
    only: Annotated[str | None, typer.Option(help="drafter or verifier: this machine is for one.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    drafter_port: Port = 8001,
    verifier_port: Port = 8100,
    replicas: Annotated[int, typer.Option(min=1, max=64, help="Servers of the drafter.")] = 1,
    device: Annotated[str | None, typer.Option(help="cpu or gpu; gpu if nvidia-smi finds one.")] = None,
    tensor_parallel: Annotated[int, typer.Option(min=1, help="GPUs for the verifier.")] = 1,
    gpu_memory: Annotated[
        str | None, typer.Option(help="Shares of a GPU for drafter and verifier: 0.25,0.6")
    ] = None,
    kv_cache: Annotated[
        int, typer.Option(min=1, help="GiB for keys and values of each server on a CPU.")
    ] = 1,
    max_model_len: Annotated[int, typer.Option(min=256, help="Longest prompt and answer, in tokens.")] = 4096,
    quantization: Annotated[
        str | None, typer.Option(help="Of the verifier; most weights say it themselves.")
    ] = None,
    dtype: Annotated[str | None, typer.Option(help="Layout of the weights: float32, bfloat16, ...")] = None,
    python: Annotated[
        Path | None, typer.Option(help="Python that has vLLM; this one or .venv-vllm by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the commands of the model servers for a drafter and a verifier, or --start them."""
    with friendly():
        settings = load_settings(drafter=drafter, verifier=verifier)
        kind, gpus = _device(device, start=start)
        with bar() as progress:
            models = _models(settings, Weights(home=settings.home, progress=progress))
        plan = make_plan(
            Choice(
                drafter=models["drafter"],
                verifier=models["verifier"],
                only=_role(only),
                host=host,
                drafter_port=drafter_port,
                verifier_port=verifier_port,
                replicas=replicas,
                device=kind,
                gpus=gpus,
                cores=cores(),
                tensor_parallel=tensor_parallel,
                memory=_shares(gpu_memory),
                cache_gib=kv_cache,
                max_model_len=max_model_len,
                quantization=quantization,
                dtype=dtype,
            )
        )
        keys = _keys(settings)
        _warn(plan, keys)
        interpreter = find_python(python)
        if start:
            _run(plan, interpreter, settings.home / "vllm", keys, as_json=as_json)
        else:
            _print(plan, interpreter, keyed=keys, as_json=as_json)


def _device(given: str | None, *, start: bool) -> tuple[Device, tuple[str, ...]]:
    """The kind, and the GPUs; a plan for another machine's GPUs can be printed, and not started."""
    gpus = find_gpus() if given != "cpu" else ()
    if given == "gpu" and start and not gpus:
        raise UsageError(
            "--device gpu: nvidia-smi finds no GPU that may be used here; --device cpu goes without."
        )
    match given:
        case None:
            return ("gpu" if gpus else "cpu"), gpus
        case "cpu" | "gpu":
            return given, gpus
        case _:
            raise UsageError(f"--device is cpu or gpu, not {given!r}.")


def _role(given: str | None) -> Role | None:
    match given:
        case None | "drafter" | "verifier":
            return given
        case _:
            raise UsageError(f"--only is drafter or verifier, not {given!r}.")


def _models(settings: Settings, weights: Weights) -> dict[Role, Model]:
    return {"drafter": _model(settings.drafter, weights), "verifier": _model(settings.verifier, weights)}


def _model(name: str, weights: Weights) -> Model:
    """A model that is not on this machine is left to the server, which fetches it where it runs."""
    if name not in weights.names and HUB_ID.fullmatch(name) and not Path(name).expanduser().exists():
        return Model(source=name, name=name, local=False)
    return Model(source=str(weights.ensure(name).absolute()), name=model_name(name), local=True)


def _shares(given: str | None) -> tuple[float, float] | None:
    if given is None:
        return None
    try:
        drafter, verifier = (float(part) for part in given.split(","))
    except ValueError as error:
        raise UsageError("--gpu-memory wants two shares with a comma between: 0.25,0.6") from error
    if not (0 < drafter <= 1 and 0 < verifier <= 1):
        raise UsageError("--gpu-memory: a share is above 0 and at most 1.")
    return drafter, verifier


def _keys(settings: Settings) -> dict[Role, str]:
    given: dict[Role, SecretStr | None] = {"drafter": settings.drafter_key, "verifier": settings.verifier_key}
    known = {role: key.get_secret_value().strip() for role, key in given.items() if key is not None}
    return {role: key for role, key in known.items() if key}  # an empty one would guard nothing


def _warn(plan: Plan, keys: dict[Role, str]) -> None:
    open_ones = [one for one in plan.servers if one.role not in keys and not is_loopback(one.host)]
    for setting, host in dict.fromkeys((server.key_setting, server.host) for server in open_ones):
        say(f"Warning: anyone who reaches {host} can use a server without a key; set {setting}.")


def _print(plan: Plan, interpreter: Path | None, *, keyed: Container[Role], as_json: bool) -> None:
    if interpreter is None:
        say(f"No vLLM was found here; {MAKE_ENVIRONMENT}.")
    python = str(interpreter or "python")
    if as_json:
        print_json(as_dict(plan, python=python))
    else:
        typer.echo(as_shell(plan, python=python, keyed=keyed), nl=False)


def _run(plan: Plan, interpreter: Path | None, logs: Path, keys: dict[Role, str], *, as_json: bool) -> None:
    if interpreter is None:
        raise ModelError(f"No vLLM was found here; {MAKE_ENVIRONMENT}.")
    with _signals_stop(), VllmServers(plan, python=interpreter, logs=logs, keys=keys, tell=say) as servers:
        if as_json:
            print_json(as_dict(plan, python=str(interpreter)))
        else:
            typer.echo("\n".join(exports(plan)))
        say("Ready; Ctrl-C stops them.")
        servers.watch()


@contextmanager
def _signals_stop() -> Iterator[None]:
    """SIGTERM and a closed terminal stop like Ctrl-C; Ctrl-C does so also where a shell had us ignore it."""
    stopping = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup means what it says
        stopping.append(signal.SIGHUP)
    before = {number: signal.signal(number, _interrupt) for number in stopping}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
