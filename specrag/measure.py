"""What this machine can do: two figures that bound the speed of every model on it.

Reading a prompt is bounded by matrix products, writing a token by reading all weights from memory once. Both
are measured, not looked up, because virtual machines share their cores. The median of several runs is
taken: the minimum would flatter a noisy machine, the mean would blame it for its neighbours.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

REPEATS = 9
MATRIX_SIZE = 1024
BUFFER_MEGABYTES = 256
"""Several times the last-level cache of a server, so that the bytes do come from memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFigures:
    """Measured speed of the processor, with the conditions."""

    matrix_gflops: float
    """fp32 matrix product, 10^9 operations a second."""
    memory_gb_s: float
    """Reading fp32 from memory, 10^9 bytes a second."""
    threads: int
    repeats: int


def measure_machine(*, threads: int, clock: Callable[[], float] = time.perf_counter) -> MachineFigures:
    """Both figures with `threads` threads; takes a second or two."""
    return MachineFigures(
        matrix_gflops=matrix_gflops(threads=threads, clock=clock),
        memory_gb_s=memory_gb_s(threads=threads, clock=clock),
        threads=threads,
        repeats=REPEATS,
    )


def matrix_gflops(
    *,
    threads: int,
    size: int = MATRIX_SIZE,
    repeats: int = REPEATS,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Speed of an fp32 product of two square matrices, 2 n^3 operations, by the faster of torch's libraries.

    Which one that is depends on the processor: on some, MKL does not use the widest instructions.
    """
    with _torch_threads(threads):
        seconds = min(_median_seconds(product, repeats, clock) for product in _products(size))
    return 2 * size**3 / seconds / 1e9


def _products(size: int) -> list[Callable[[], object]]:
    """The same product by each library that this build of torch has."""
    import torch

    left, right = torch.rand(size, size), torch.rand(size, size)  # [n, n] each
    out = torch.empty(size, size)
    known: list[Callable[[], object]] = [lambda: torch.mm(left, right, out=out)]
    with suppress(AttributeError, RuntimeError, NotImplementedError):  # not every build has oneDNN
        packed = torch.ops.mkldnn._reorder_linear_weight(right, None)  # noqa: SLF001 - as `models/packed.py`
        linear = torch.ops.mkldnn._linear_pointwise  # noqa: SLF001
        linear(left, packed, None, "none", [], "")
        known.append(lambda: linear(left, packed, None, "none", [], ""))
    return known


def memory_gb_s(
    *,
    threads: int,
    megabytes: int = BUFFER_MEGABYTES,
    repeats: int = REPEATS,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Speed of reading a large fp32 buffer once, as decoding a token reads all weights once."""
    import torch

    buffer = torch.ones(megabytes * 1_000_000 // 4)
    with _torch_threads(threads):
        seconds = _median_seconds(buffer.sum, repeats, clock)
    return buffer.numel() * 4 / seconds / 1e9


def _median_seconds(work: Callable[[], object], repeats: int, clock: Callable[[], float]) -> float:
    work()  # the first run touches pages and starts threads
    seconds = []
    for _ in range(repeats):
        begin = clock()
        work()
        seconds.append(clock() - begin)
    return max(statistics.median(seconds), 1e-9)


@contextmanager
def _torch_threads(threads: int) -> Iterator[None]:
    # The number belongs to the process: a model that runs in it must find it as it was.
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
