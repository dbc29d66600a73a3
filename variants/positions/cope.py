import torch
from einops import einsum, rearrange, repeat
from torch import nn

from variants.dims import Dims
from variants.part import at_least
from variants.positions.position import Position, ends, relative
from variants.shapes import KeyIndex, Keys, Queries, QueryIndex, Scores


class CoPE(Position):
    r"""Positions that count what a query finds worth counting, such as words or sentences.

    A gate $g_{ij} = \sigma(q_i \cdot k_j / \sqrt{d\_head})$ says whether key j counts for query i.
    Key j stands $p_{ij} = \sum_{j \le k \le i} g_{ik}$ counts back, at most max_position - 1, and
    adds $q_i \cdot e[p_{ij}]$ to the score, where e is a learned table, interpolated linearly
    between its rows and shared by the heads. Keys after the query do not count, and have p = 0:
    it is meant for causal masks.

    What lies between a key and its query counts even where the mask forbids to attend to it. Only
    tokens of the key's own sequence do: padding and other documents do not. The table is zero at
    first.

    Limits: it sees nothing of the order of later keys, so without a causal mask all of them share
    the first row. Counts beyond the table share its last row. Gates and counts are formed for every
    pair of tokens in each layer, in float32 or better: several times the memory of the scores
    themselves, which `chunked` alone keeps from growing as the square of the length.

    Source: Golovneva et al. 2024, section 4 (arXiv:2405.18719).

    Args:
        max_position: Rows of the table.

    Raises:
        ValueError: If max_position is below 2.
    """

    name = "cope"
    distance_only = True
    causal_only = True

    def __init__(self, dims: Dims, max_position: int = 64) -> None:
        super().__init__(dims)
        self.max_position = at_least(2, "max_position", max_position)
        self.table = nn.Parameter(torch.zeros(max_position, dims.d_head))

    def scores(self, q: Queries, k: Keys, q_index: QueryIndex, k_index: KeyIndex) -> Scores:
        exact = torch.promote_types(q.dtype, torch.float32)
        q, k = q.to(exact), k.to(exact)
        pairs = "batch heads query d_head, batch heads key d_head -> batch heads query key"
        gate = einsum(q * q.shape[-1] ** -0.5, k, pairs).sigmoid()
        later = rearrange(relative(q_index, k_index) > 0, "batch query key -> batch 1 query key")
        counted = _to_the_end(gate.masked_fill(later, 0.0), ends(k_index))
        place = counted.clamp(max=self.max_position - 1)
        each = einsum(
            q, self.table.to(exact), "batch heads query d_head, row d_head -> batch heads query row"
        )
        low = place.detach().floor().long()
        high = (low + 1).clamp(max=self.max_position - 1)
        near, far = each.gather(-1, low), each.gather(-1, high)
        return near + (place - low) * (far - near)


def _to_the_end(gate: Scores, end: KeyIndex) -> Scores:
    """For each key, the sum of the gates from there to the last key of its sequence."""
    total = gate.flip(-1).cumsum(dim=-1).flip(-1)
    beyond = torch.cat([total, torch.zeros_like(total[..., :1])], dim=-1)
    heads, query = gate.shape[1:3]
    end = repeat(end + 1, "batch key -> batch heads query key", heads=heads, query=query)
    return total - beyond.gather(-1, end.expand(gate.shape[0], -1, -1, -1))
