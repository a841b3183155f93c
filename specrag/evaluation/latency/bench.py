"""The benchmark: two models, one plan, both ways in turn, and everything that a report needs of it.

In this process the models are shapes with random weights, and every phase has its floor. Behind servers they
are whatever the servers serve; what those compute, and share, is theirs to know, so there is no floor.
"""

import asyncio
import ctypes
import gc
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from specrag.config import Settings
from specrag.errors import UsageError
from specrag.evaluation.latency.energy import Meter
from specrag.evaluation.latency.floor import Floors, floors, this_machine
from specrag.evaluation.latency.interleave import Measured, Plan, measure
from specrag.evaluation.latency.memory import Need, check, free_memory, need_of
from specrag.evaluation.latency.passes import Counted, counted
from specrag.evaluation.latency.random_weights import made
from specrag.evaluation.latency.shapes import Shape
from specrag.evaluation.latency.texts import work_of
from specrag.evaluation.latency.ways import Pair
from specrag.measure import MachineFigures, measure_machine
from specrag.models.embedded import SMOLLM2
from specrag.models.loading import load_tokenizer
from specrag.models.local import LocalModel
from specrag.models.render import Renderer
from specrag.models.server.access import access_of
from specrag.models.server.model import ServerModel
from specrag.models.weights import Weights
from specrag.models.worker import Worker
from specrag.types import ModelInfo, Role

Tell = Callable[[str], None]
_GIGA: Final = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What was measured, of which models, and what bounds it."""

    plan: Plan
    drafter: ModelInfo
    verifier: ModelInfo
    measured: Measured
    energy_told: bool
    shapes: dict[Role, Shape] | None = None
    """None behind servers, as all that follows."""
    machine: MachineFigures | None = None
    phases: tuple[Counted, ...] = ()
    floors: Floors | None = None


class Bench:
    """The models of this process while they are measured."""

    def __init__(
        self,
        settings: Settings,
        *,
        tell: Tell,
        tokenizer: Any = None,
        free: Callable[[], int] = free_memory,
    ) -> None:
        """Make the thread that computes.

        Args:
            settings: precision, threads and seed of the models.
            tell: hears a line about each step.
            tokenizer: replaces that of the embedded model, which is fetched if need be.
            free: tells how many bytes the models may take.
        """
        self._settings = settings
        self._tell = tell
        self._free = free
        self._tokenizer = tokenizer or _embedded_tokenizer(settings)
        self._worker = Worker()
        self._machine: MachineFigures | None = None

    def close(self) -> None:
        """Let go of the models and of the thread that computes."""
        self._let_go()
        self._worker.close()

    @property
    def machine(self) -> MachineFigures:
        """What this machine can do, measured once, on the thread that computes."""
        if self._machine is None:
            self._tell("measuring the machine")
            threads = self._settings.threads
            self._machine = self._worker.run(lambda: measure_machine(threads=threads))
        return self._machine

    def counted(self, plan: Plan) -> tuple[Counted, ...]:
        """What the models have to compute under this plan."""
        work = work_of(plan.lengths, seed=plan.seed, repetition=0)
        return counted(work, plan.lengths, Renderer(self._tokenizer))

    def run(self, drafter: Shape, verifier: Shape, plan: Plan) -> Result:
        """Build both models and measure them.

        Raises:
            ModelError: they do not fit the memory, or fail.
            UsageError: a vocabulary is smaller than the tokenizer's.
        """
        phases = self.counted(plan)
        check(needs(drafter, verifier, phases, self._settings), self._free())
        return self.against(self.model(drafter), drafter, verifier, plan)

    def against(self, small: LocalModel, drafter: Shape, verifier: Shape, plan: Plan) -> Result:
        """Measure a drafter that is there against a verifier that is built for it."""
        phases = self.counted(plan)
        machine = self.machine
        meter = Meter()
        measured, described = self._measured(small, verifier, plan, meter)
        self._let_go()  # of the verifier, before another one is built
        shapes: dict[Role, Shape] = {"drafter": drafter, "verifier": verifier}
        bounds = this_machine(
            gflops=machine.matrix_gflops, gb_s=machine.memory_gb_s, precision=self._settings.precision
        )
        return Result(
            plan=plan,
            drafter=small.info,
            verifier=described,
            measured=measured,
            energy_told=meter.told,
            shapes=shapes,
            machine=machine,
            phases=phases,
            floors=floors(phases, shapes, bounds),
        )

    def _let_go(self) -> None:
        """Free the memory of models that nobody holds: the thread still holds what it did last."""
        self._worker.run(lambda: None)
        gc.collect()
        with suppress(AttributeError, OSError):  # glibc alone keeps what was freed, and can be told not to
            ctypes.CDLL(None).malloc_trim(0)

    def _measured(
        self, small: LocalModel, verifier: Shape, plan: Plan, meter: Meter
    ) -> tuple[Measured, ModelInfo]:
        large = self.model(verifier)
        pair = Pair(drafter=small, verifier=large)
        return asyncio.run(measure(pair, plan, meter=meter, tell=self._tell)), large.info

    def model(self, shape: Shape) -> LocalModel:
        """A model of a shape."""
        self._tell(f"building {shape.name}: {shape.parameters / _GIGA:.2f} billion random weights")
        precision, seed = self._settings.precision, self._settings.seed
        return LocalModel(
            lambda: made(shape, tokenizer=self._tokenizer, precision=precision, seed=seed),
            name=shape.name,
            worker=self._worker,
            threads=self._settings.threads,
        )


def needs(
    drafter: Shape, verifier: Shape, phases: Sequence[Counted], settings: Settings
) -> tuple[Need, Need]:
    """The memory that both models take under a plan."""
    by_name = {one.name: one for one in phases}
    read, write, verify = (by_name[name].passes for name in ("read", "write", "verify"))
    draft_read, draft_write = by_name["draft read"].passes, by_name["draft write"].passes
    return (
        need_of(
            drafter,
            settings.precision,
            tokens=draft_read[0].tokens + draft_write[-1].cached,
            read_at_once=draft_read[0].tokens,
            logits=draft_read[0].logits,
        ),
        need_of(
            verifier,
            settings.precision,
            tokens=read[0].tokens + write[-1].cached,
            read_at_once=max(read[0].tokens, verify[0].tokens),
            logits=verify[0].logits,
        ),
    )


def _embedded_tokenizer(settings: Settings) -> Any:
    folder = Weights(home=settings.home).ensure(SMOLLM2.name)
    return load_tokenizer(folder, name=SMOLLM2.title)


def over_servers(settings: Settings, plan: Plan, *, tell: Tell) -> Result:
    """Measure the models behind the servers of the settings.

    Raises:
        ServerUnreachable: a server does not answer.
        ModelError: a server cannot be used, fails, or does not write what it is asked for.
        UsageError: a role has no server.
    """
    return asyncio.run(_over_servers(settings, plan, tell))


async def _over_servers(settings: Settings, plan: Plan, tell: Tell) -> Result:
    drafter, verifier = _server(settings, "drafter"), _server(settings, "verifier")
    try:
        infos = [await model.connect() for model in (drafter, verifier)]
        # no meter: this machine's counters say nothing of the machines that compute
        measured = await measure(Pair(drafter=drafter, verifier=verifier), plan, tell=tell)
    finally:
        await drafter.aclose()
        await verifier.aclose()
    return Result(plan=plan, drafter=infos[0], verifier=infos[1], measured=measured, energy_told=False)


def _server(settings: Settings, role: Role) -> ServerModel:
    access = access_of(settings, role)
    if access is None:
        raise UsageError(f"The {role} has no server; give --server-drafter and --server-verifier, both.")
    return ServerModel(access)
