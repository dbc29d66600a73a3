import math

import torch
from einops import rearrange
from jaxtyping import Int
from torch import Tensor, nn

from variants.dims import Dims
from variants.positions.position import Position, relative
from variants.shapes import KeyIndex, QueryIndex, Scores


class T5Bias(Position):
    r"""A learned bias per head for each bucket of relative positions.

    With r = key - query and n = |r|, the first half of the buckets of a side hold one distance
    each; the others hold ranges that grow geometrically up to max_distance, beyond which all
    distances share the last. With E exact buckets of B on a side:
    $bucket = E + \lfloor \log(n/E) / \log(max\_distance/E) \cdot (B - E) \rfloor$, at most B - 1.
    Keys after the query use a second set of B buckets; `bidirectional=False` gives all buckets to
    the past and puts the future into bucket 0, so it is meant for causal masks.

    >>> eight = T5Bias(Dims(1, 1, 1, 1), num_buckets=8, max_distance=20)
    >>> eight.bucket(torch.arange(-8, 9)).tolist()
    [3, 3, 2, 2, 2, 2, 2, 1, 0, 5, 6, 6, 6, 6, 6, 7, 7]
    >>> T5Bias(Dims(1, 1, 1, 1)).bucket(torch.tensor([-91, -90, -8, 0, 1, 128])).tolist()
    [15, 14, 8, 0, 17, 31]

    The table is zero at first. Unlike T5, scores keep their 1/√d_head scale.

    Source: Raffel et al. 2020, section 2.1 (arXiv:1910.10683), and the authors' code.

    Raises:
        ValueError: If num_buckets is too small or odd, or max_distance leaves no range.
    """

    name = "t5_bias"
    distance_only = True

    def __init__(
        self, dims: Dims, num_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True
    ) -> None:
        super().__init__(dims)
        sides = 2 if bidirectional else 1
        if num_buckets % (2 * sides) or num_buckets < 2 * sides:
            raise ValueError(
                f"num_buckets must be a positive multiple of {2 * sides}: each side has as many "
                f"exact as growing buckets; got num_buckets={num_buckets}"
            )
        self.per_side = num_buckets // sides
        if max_distance <= self.per_side // 2:
            raise ValueError(
                f"max_distance must exceed the {self.per_side // 2} distances that have a bucket "
                f"of their own; got max_distance={max_distance}"
            )
        self.max_distance, self.bidirectional = max_distance, bidirectional
        self.causal_only = not bidirectional
        self.table = nn.Parameter(torch.zeros(num_buckets, dims.n_heads))

    def bucket(self, relative: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
        """The bucket of each relative position r = key - query."""
        if self.bidirectional:
            side, distance = self.per_side * (relative > 0), relative.abs()
        else:
            side, distance = torch.zeros_like(relative), (-relative).clamp(min=0)
        exact = self.per_side // 2
        growth = (distance.clamp(min=1).double() / exact).log() / math.log(
            self.max_distance / exact
        )
        far = exact + (growth * (self.per_side - exact)).long()
        return side + torch.where(distance < exact, distance, far.clamp(max=self.per_side - 1))

    def bias(self, q_index: QueryIndex, k_index: KeyIndex) -> Scores:
        bucket = self.bucket(relative(q_index, k_index))
        return rearrange(self.table[bucket], "batch query key heads -> batch heads query key")
