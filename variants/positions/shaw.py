import torch
from einops import einsum, repeat
from torch import nn

from variants.dims import Dims
from variants.part import at_least
from variants.positions.position import Position, relative
from variants.shapes import KeyIndex, Keys, Queries, QueryIndex, Scores


class Shaw(Position):
    """A learned vector for each relative position, added to the key: clipped at a distance.

    score(i, j) = q_i·(k_j + a_c) / √d_head with c = clip(j - i, -K, K); heads share the vectors.
    Distances beyond K are all alike, so distances that training never shows must lie beyond it.
    The paper also adds vectors to the values and finds that those of the keys are enough; these
    are the keys' alone. The initializer fills the table like token embeddings.

    Limits: order within what lies further away than K is not seen. Scores are formed for every pair
    of tokens in each layer, in float32 or better, so no fused kernel saves their memory; `chunked`
    forms them a block at a time.

    Source: Shaw et al. 2018, sections 3.1 and 3.2 (arXiv:1803.02155).

    Args:
        max_distance: K, the largest distance that has vectors of its own.

    Raises:
        ValueError: If max_distance is not positive.
    """

    name = "shaw"
    distance_only = True

    def __init__(self, dims: Dims, max_distance: int = 16) -> None:
        super().__init__(dims)
        self.max_distance = at_least(1, "max_distance", max_distance)
        self.table = nn.Embedding(2 * max_distance + 1, dims.d_head)

    def scores(self, q: Queries, k: Keys, q_index: QueryIndex, k_index: KeyIndex) -> Scores:
        exact = torch.promote_types(q.dtype, torch.float32)
        each = einsum(
            q.to(exact) * q.shape[-1] ** -0.5,
            self.table.weight.to(exact),
            "batch heads query d_head, row d_head -> batch heads query row",
        )
        far = self.max_distance
        row = relative(q_index, k_index).clamp(-far, far) + far
        row = repeat(row, "batch query key -> batch heads query key", heads=q.shape[1])
        return each.gather(-1, row.expand(q.shape[0], -1, -1, -1))
