"""What a person chooses when servers are planned, before anything is derived from it."""

from dataclasses import dataclass

from specrag.vllm.flags import Device, Role


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
    only: Role | None = None
    """The role that this machine is for; None has both."""
    device: Device = "cpu"
    gpus: tuple[str, ...] = ()
    """GPUs that may be used, by number or UUID; empty means not known."""
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

    @property
    def drafters(self) -> int:
        """Servers of the drafter on this machine."""
        return 0 if self.only == "verifier" else self.replicas

    @property
    def verifiers(self) -> int:
        """Servers of the verifier on this machine."""
        return 0 if self.only == "drafter" else 1
