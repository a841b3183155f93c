"""Attention over a token tree and over decoding rows, and the two caches that go with them.

transformers calls `attend` in every layer (its attention interface); which kind of pass it is travels with
the call as the keyword `plan`. Both kinds compute only what their mask lets through: a segment of a tree
attends to its ancestors and to itself, so the block mask is never written out and nothing is padded.
"""

from collections.abc import Sequence
from typing import Any

from specrag.models.tree import TokenTree

NAME = "specrag"
"""Under this name transformers knows `attend`."""


class TreePlan:
    """Which keys each segment of a tree sees."""

    def __init__(self, tree: TokenTree) -> None:
        import torch

        self.steps: list[tuple[slice, Any, Any]] = []
        """For every segment: its queries, its keys (a slice or places), and its mask (None: causal)."""
        for segment in tree.segments:
            own = slice(segment.start, segment.end)
            before = [tree.segments[number] for number in segment.ancestors]
            if not before:
                self.steps.append((own, own, None))
                continue
            seen = sum(piece.end - piece.start for piece in before)
            length = segment.end - segment.start
            adjacent = all(
                one.end == two.start for one, two in zip(before, [*before[1:], segment], strict=True)
            )
            keys: Any = slice(before[0].start, segment.end)
            if not adjacent:
                keys = torch.cat([torch.arange(piece.start, piece.end) for piece in (*before, segment)])
            mask = torch.ones((length, seen + length), dtype=torch.bool).tril(diagonal=seen)
            self.steps.append((own, keys, mask))


class RowPlan:
    """Which cached keys each decoding row sees: an additive mask (m, 1, 1, T)."""

    def __init__(self, mask: Any) -> None:
        self.mask = mask


def attend(
    module: Any,  # noqa: ARG001 - as transformers calls it
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,  # noqa: ARG001 - the plan replaces it
    *,
    plan: TreePlan | RowPlan,
    scaling: float,
    **others: Any,
) -> tuple[Any, None]:
    """Queries (m, H, n, D) over keys and values (m, G, T, D); returns (m, n, H, D).

    Raises:
        NotImplementedError: the layer wants more than plain causal attention, such as a sliding window.
    """
    if any(others.get(name) is not None for name in ("sliding_window", "softcap", "s_aux")):
        raise NotImplementedError("this layer's attention is not plain causal attention")
    from torch.nn.functional import scaled_dot_product_attention as attention

    few = key.shape[1] < query.shape[1]  # grouped queries: several heads share their keys
    if isinstance(plan, RowPlan):
        out = attention(query, key, value, attn_mask=plan.mask, scale=scaling, enable_gqa=few)
        return out.transpose(1, 2), None
    pieces = [
        attention(
            query[:, :, own],
            key[:, :, keys],
            value[:, :, keys],
            attn_mask=mask,
            is_causal=mask is None,
            scale=scaling,
            enable_gqa=few,
        )
        for own, keys, mask in plan.steps
    ]
    import torch

    return torch.cat(pieces, dim=2).transpose(1, 2), None


class TreeCache:
    """Keeps the packed keys and values of one tree, layer by layer: (1, G, N, D) each."""

    def __init__(self) -> None:
        self.layers: list[tuple[Any, Any]] = []

    def update(self, key: Any, value: Any, layer: int, **_: Any) -> tuple[Any, Any]:
        """What transformers calls in every layer."""
        assert layer == len(self.layers), "a tree is read in one pass"
        self.layers.append((key, value))
        return key, value

    def get_seq_length(self, *_: Any, **__: Any) -> int:
        """Nothing was read before."""
        return 0

    def rows(self, paths: Sequence[Sequence[int]], room: int) -> "RowCache":
        """A row for every path, with `room` more places in each."""
        return RowCache(self, paths, room)


class RowCache:
    """Keys and values of m rows in buffers of fixed shape, so that a decoding step copies none of them."""

    def __init__(self, tree: TreeCache, paths: Sequence[Sequence[int]], room: int) -> None:
        import torch

        self.lengths = torch.tensor([len(path) for path in paths])  # (m,)
        self.width = int(self.lengths.max())
        places = torch.zeros((len(paths), self.width), dtype=torch.long)
        for row, path in enumerate(paths):
            places[row, : len(path)] = torch.tensor(path)
        size = self.width + room
        self._layers = []
        for number, packed in enumerate(tree.layers):
            self._layers.append(tuple(_spread(part, places, size) for part in packed))
            tree.layers[number] = (None, None)  # not both in memory
        masked = torch.arange(size)[None] >= self.lengths[:, None]  # (m, size)
        self.mask = torch.zeros((len(paths), 1, 1, size)).masked_fill(masked[:, None, None], float("-inf"))
        self._rows = torch.arange(len(paths))

    def advance(self) -> RowPlan:
        """Make room for one token in every row; returns what the step may see."""
        self._places = self.lengths.clone()  # (m,) where the new keys go
        self.mask[self._rows, 0, 0, self._places] = 0
        self.lengths += 1
        self.width += 1
        return RowPlan(self.mask[..., : self.width])

    def update(self, key: Any, value: Any, layer: int, **_: Any) -> tuple[Any, Any]:
        """What transformers calls in every layer: key and value (m, G, 1, D) of the new token."""
        keys, values = self._layers[layer]
        keys[self._rows, :, self._places] = key[:, :, 0]
        values[self._rows, :, self._places] = value[:, :, 0]
        return keys[:, :, : self.width], values[:, :, : self.width]

    def get_seq_length(self, *_: Any, **__: Any) -> int:
        """Tokens in the longest row."""
        return self.width

    def keep(self, alive: Sequence[int]) -> None:
        """Drop all other rows."""
        import torch

        chosen = torch.tensor(alive)
        for number, layer in enumerate(self._layers):  # one by one, or the peak would be twice the cache
            self._layers[number] = tuple(part[chosen] for part in layer)
        self.mask, self.lengths = self.mask[chosen], self.lengths[chosen]
        self._rows = torch.arange(len(alive))
        self.width = int(self.lengths.max())


def _spread(packed: Any, places: Any, size: int) -> Any:
    """(1, G, N, D) to one buffer (m, G, size, D) whose row r begins with the tokens at `places[r]`."""
    rows, width = places.shape
    buffer = packed.new_zeros((rows, packed.shape[1], size, packed.shape[3]))
    buffer[:, :, :width] = packed[0][:, places].transpose(0, 1)
    return buffer


def register() -> None:
    """Make `attend` known to transformers."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, attend)
