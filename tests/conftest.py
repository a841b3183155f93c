"""Shared fixtures: the real weights, small values, and a wall against the network.

Tests run offline by construction: a connection that leaves loopback raises, except in the one fixture that
fetches the weights and in tests marked `network`.
"""

import gc
import ipaddress
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specrag.config import load_settings
from specrag.models.weights import Weights

_allowed = {"network": False}


class NetworkUsedError(RuntimeError):
    """A test tried to leave this machine."""


def _wall(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect" and not _allowed["network"]:
        address = arguments[1]
        if isinstance(address, tuple) and not _is_loopback(str(address[0])):
            raise NetworkUsedError(f"a test connected to {address[0]}; mark it `network` if it must")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


sys.addaudithook(_wall)


@pytest.fixture(autouse=True)
def _network(request: pytest.FixtureRequest) -> Iterator[None]:
    _allowed["network"] = request.node.get_closest_marker("network") is not None
    yield
    _allowed["network"] = False


@pytest.fixture(scope="module", autouse=True)
def _old_objects_rest() -> None:
    """Garbage is looked for among the objects of a file's tests: among all of a session's it takes seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    gc.freeze()


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, also where the tests were started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def weights() -> Weights:
    """The real weights, in SPECRAG_HOME or the platform's cache, fetched once."""
    return Weights(home=load_settings().home)


@pytest.fixture
def own_home(weights: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the real weights and nothing else, for commands that keep something in it."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "weights").symlink_to(load_settings().home / "weights")
    monkeypatch.setenv("SPECRAG_HOME", str(home))
    return home


@pytest.fixture(scope="session")
def embedder_path(weights: Weights) -> Path:
    """Folder of the packaged MiniLM."""
    return weights.ensure("all-minilm-l6-v2")


@pytest.fixture(scope="session")
def model_path(weights: Weights) -> Path:
    """Folder of the packaged SmolLM2."""
    return weights.ensure("smollm2-135m-instruct")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real questions and awkward documents, which are not part of the project."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the folder ../shared/data is not here")
    return folder
