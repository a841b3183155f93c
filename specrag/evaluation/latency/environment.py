"""Where figures come from: the machine that computes, or the servers that do and what asks them."""

import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from specrag import __version__
from specrag.doctor import processor_name
from specrag.types import Role


def environment(threads: int | None = None, *, servers: Mapping[Role, str] | None = None) -> dict[str, Any]:
    """The environment of a measurement.

    Args:
        threads: that compute in this process.
        servers: what serves each role, where nothing is computed in this process.
    """
    computing = () if servers else ("torch", "transformers")
    return {
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "threads": threads,
        "servers": None if servers is None else dict(servers),
        "versions": {
            "specrag": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in computing},
        },
    }
