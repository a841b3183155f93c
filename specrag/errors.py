"""Every error that this program raises on purpose.

The message is one sentence for a person: it names the thing that failed and the remedy. The class says how
to react: a `TransientError` is worth another try, every other one needs the person to change something.

    SpecragError
    ├── UsageError             the request itself is wrong: an empty question, an unknown setting
    ├── DocumentError          one file cannot be read; the others are not affected
    ├── StoreError             the vector store refuses: locked, another embedder, a missing collection
    ├── WeightsError           weights cannot be fetched, checked or converted
    ├── ModelError             a model cannot be loaded or cannot answer
    │   └── ContextTooLong     a prompt is longer than the model's context
    ├── TraceError             a trace cannot be found or does not follow the schema
    ├── RunError               a run began and gave no answer (in `api.py`: it brings the trace along)
    └── TransientError         may pass by itself
        ├── StoreLocked        another process owns the embedded store
        ├── StoreUnreachable   the Chroma server does not answer
        └── ServerUnreachable  no server of a model answers
"""

from typing import ClassVar


class SpecragError(Exception):
    """Base of all errors that are meant for a person to read."""

    kind: ClassVar[str] = "error"


class UsageError(SpecragError):
    """The request itself is wrong."""

    kind = "usage"


class DocumentError(SpecragError):
    """A file cannot become a document. `reason` is a stable word for machines."""

    kind = "document"

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class StoreError(SpecragError):
    """The vector store refuses the request."""

    kind = "store"


class WeightsError(SpecragError):
    """Weights cannot be fetched, checked or converted."""

    kind = "weights"


class ModelError(SpecragError):
    """A model cannot be loaded or cannot answer."""

    kind = "model"


class ContextTooLong(ModelError):
    """A prompt does not fit the model's context."""

    kind = "context_too_long"


class TraceError(SpecragError):
    """A trace cannot be found or does not follow the schema."""

    kind = "trace"


class TransientError(SpecragError):
    """May pass by itself; worth another try."""

    kind = "transient"


class StoreLocked(TransientError, StoreError):
    """Another process owns the embedded store."""

    kind = "store_locked"


class StoreUnreachable(TransientError, StoreError):
    """The Chroma server does not answer."""

    kind = "store_unreachable"


class ServerUnreachable(TransientError, ModelError):
    """No server of a model answers."""

    kind = "server_unreachable"
