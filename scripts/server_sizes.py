"""How much memory drafters and verifiers of known shapes take: arithmetic, nothing is measured or loaded.

    python -m scripts.server_sizes

prints the tables of docs/servers.md; a test compares them. Shapes are those of the models' config.json.
"""

from dataclasses import dataclass

BF16 = 2
AWQ_GROUP = 128
AWQ = 0.5 + 2.5 / AWQ_GROUP
"""Bytes of a weight: 4 bits, and for each group of 128 a scale of 16 bits and a zero point of 4."""
GPUS = (24, 48, 80, 141)
"""Gigabytes: L4 or A10G, L40S, A100 or H100, H200."""
UTILISATION = 0.85
TOKENS = 20_000
"""Kept at once for 8 runs: 8 prompts of all passages (about 1,500) or 8 x 4 drafts to verify (about 200)."""
CHUNK = 1024
"""Rows of logits that vLLM makes at a time for prompt log-probabilities on a GPU."""
GIGA, KIBI = 1e9, 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A decoder with grouped attention and a gated feed-forward part."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    tied: bool
    """Whether the head is the embedding."""

    @property
    def matrices(self) -> int:
        """Weights in the layers' matrices, which AWQ quantises."""
        attention = 2 * self.heads * self.head_dim + 2 * self.kv_heads * self.head_dim
        return self.layers * self.hidden * (attention + 3 * self.intermediate)

    @property
    def others(self) -> int:
        """Embedding and head, which AWQ leaves alone; norms and biases are too few to show."""
        return self.vocabulary * self.hidden * (1 if self.tied else 2)

    def weights_gb(self, *, quantised: bool) -> float:
        """Gigabytes of the weights."""
        each = AWQ if quantised else BF16
        return (self.matrices * each + self.others * BF16) / GIGA

    @property
    def cache_bytes(self) -> int:
        """Keys and values of one token in bf16: 2 x layers x kv heads x head dimension x bytes."""
        return 2 * self.layers * self.kv_heads * self.head_dim * BF16

    @property
    def logits_gb(self) -> float:
        """Log-probabilities of one chunk in fp32: rows x vocabulary x 4."""
        return CHUNK * self.vocabulary * 4 / GIGA

    def gpus(self, size_gb: int, *, quantised: bool) -> int | None:
        """The least tensor parallel size that holds weights and cache; it must divide the heads."""
        needed = self.weights_gb(quantised=quantised) + TOKENS * self.cache_bytes / GIGA
        fitting = (n for n in (1, 2, 4, 8) if n * size_gb * UTILISATION >= needed)
        found = next(fitting, None)
        return found if found is not None and self.kv_heads % found == 0 else None


SHAPES = (
    Shape(
        name="Qwen2.5-1.5B",
        layers=28,
        hidden=1536,
        heads=12,
        kv_heads=2,
        head_dim=128,
        intermediate=8960,
        vocabulary=151_936,
        tied=True,
    ),
    Shape(
        name="Llama-3.2-3B",
        layers=28,
        hidden=3072,
        heads=24,
        kv_heads=8,
        head_dim=128,
        intermediate=8192,
        vocabulary=128_256,
        tied=True,
    ),
    Shape(
        name="Llama-3.1-8B",
        layers=32,
        hidden=4096,
        heads=32,
        kv_heads=8,
        head_dim=128,
        intermediate=14_336,
        vocabulary=128_256,
        tied=False,
    ),
    Shape(
        name="Llama-3.1-70B",
        layers=80,
        hidden=8192,
        heads=64,
        kv_heads=8,
        head_dim=128,
        intermediate=28_672,
        vocabulary=128_256,
        tied=False,
    ),
    Shape(
        name="Qwen2.5-72B",
        layers=80,
        hidden=8192,
        heads=64,
        kv_heads=8,
        head_dim=128,
        intermediate=29_568,
        vocabulary=152_064,
        tied=False,
    ),
)


def sizes() -> str:
    """Weights, cache and logits of each shape."""
    rows = [
        "| | weights, bf16 | weights, AWQ int4 | keys and values of a token | scores of 1,024 rows |",
        "|---|---|---|---|---|",
    ]
    rows += [
        f"| {one.name} | {one.weights_gb(quantised=False):.1f} GB | {one.weights_gb(quantised=True):.1f} GB "
        f"| 2 x {one.layers} x {one.kv_heads} x {one.head_dim} x 2 = {one.cache_bytes:,} bytes "
        f"| {one.logits_gb:.2f} GB |"
        for one in SHAPES
    ]
    return "\n".join(rows)


def counts() -> str:
    """GPUs that each shape needs."""
    heads = " | ".join(f"{size} GB" for size in GPUS)
    rows = [f"| | {heads} |", "|---|" + "---|" * len(GPUS)]
    for one in SHAPES:
        for label, quantised in (("bf16", False), ("AWQ", True)):
            needed = (one.gpus(size, quantised=quantised) for size in GPUS)
            cells = " | ".join("no" if count is None else str(count) for count in needed)
            rows.append(f"| {one.name}, {label} | {cells} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(f"{sizes()}\n\n{counts()}")
