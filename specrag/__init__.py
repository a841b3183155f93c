"""Speculative RAG you can watch: a small drafter proposes, a verifier reads every draft in one pass.

    import specrag

    with specrag.Rag() as rag:
        rag.add("my-documents")
        print(rag.ask("What is the maximum load?").answer.text)

Importing this package loads no model library, not even its own modules: each name is looked up when it is
first used, and each heavy library enters when a part that needs it is made.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what `__getattr__` finds, told to type checkers and editors
    from specrag.api import Rag, RunError
    from specrag.config import Settings, load_settings
    from specrag.errors import SpecragError
    from specrag.events import Event
    from specrag.models.base import LanguageModel
    from specrag.partition import Partition
    from specrag.redecide import decide_again
    from specrag.tracing.files import load_trace, save_trace
    from specrag.tracing.trace import Trace, fold
    from specrag.types import Answer, Decision, Draft, Passage, Subset

try:
    __version__ = version("specrag")
except PackageNotFoundError:  # run from a checkout, as `python app.py` does
    __version__ = "0.1.0"

__all__ = [
    "Answer",
    "Decision",
    "Draft",
    "Event",
    "LanguageModel",
    "Partition",
    "Passage",
    "Rag",
    "RunError",
    "Settings",
    "SpecragError",
    "Subset",
    "Trace",
    "__version__",
    "decide_again",
    "fold",
    "load_settings",
    "load_trace",
    "save_trace",
]

_HOMES = {
    "Answer": "types",
    "Decision": "types",
    "Draft": "types",
    "Event": "events",
    "LanguageModel": "models.base",
    "Partition": "partition",
    "Passage": "types",
    "Rag": "api",
    "RunError": "api",
    "Settings": "config",
    "SpecragError": "errors",
    "Subset": "types",
    "Trace": "tracing.trace",
    "decide_again": "redecide",
    "fold": "tracing.trace",
    "load_settings": "config",
    "load_trace": "tracing.files",
    "save_trace": "tracing.files",
}
"""Public name to the module of this package that defines it."""


if not TYPE_CHECKING:  # a type checker would take every misspelt name for one that is found here

    def __getattr__(name: str) -> Any:
        """The public names, on demand (PEP 562)."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
