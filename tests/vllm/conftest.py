"""Two real vLLM servers on free ports of this machine, for the whole session: the embedded weights in both roles.

VLLM_PYTHON names the interpreter that has vLLM; without it, `.venv-vllm` of scripts/vllm_environment.sh is
looked for. The start takes about a minute. A test may kill a server and must start it again.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from specrag.vllm.choice import Choice, Model
from specrag.vllm.machine import cores, free_ports
from specrag.vllm.plan import make_plan
from specrag.vllm.servers import VllmServers

ROOT = Path(__file__).resolve().parents[2]
NO_VLLM = "there is no vLLM; run scripts/vllm_environment.sh --cpu, or name its Python in VLLM_PYTHON"
DRAFTER, VERIFIER = "smollm2-drafter", "smollm2-verifier"
"""Names of their own, so that a request to the wrong server is an error."""


@pytest.fixture(scope="session")
def vllm_python() -> Path:
    """The interpreter that has vLLM."""
    python = Path(os.environ.get("VLLM_PYTHON") or ROOT / ".venv-vllm" / "bin" / "python")
    if not python.exists():
        if os.environ.get("CI"):
            pytest.fail(NO_VLLM)
        pytest.skip(NO_VLLM)
    return python.absolute()


@pytest.fixture(scope="session")
def servers(
    vllm_python: Path, model_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[VllmServers]:
    """A drafter and a verifier, both ready."""
    first, second = free_ports(2)
    source = str(model_path)
    plan = make_plan(
        Choice(
            drafter=Model(source=source, name=DRAFTER, local=True),
            verifier=Model(source=source, name=VERIFIER, local=True),
            drafter_port=first,
            verifier_port=second,
            cores=cores(),
        )
    )
    with VllmServers(plan, python=vllm_python, logs=tmp_path_factory.mktemp("vllm")) as started:
        yield started
