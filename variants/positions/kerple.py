from typing import Literal

import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor, nn

from variants.dims import Dims
from variants.positions.position import Position, relative
from variants.shapes import KeyIndex, QueryIndex, Scores

LEAST = 0.01


class KERPLE(Position):
    """A bias that falls with the distance as a kernel does, with learned parameters for each head.

    - log: bias(i, j) = -p log(1 + a |i - j|)
    - power: bias(i, j) = -a |i - j|^p with p at most 2

    p starts uniform in (0, 2) and a in (0, 1). Values below 0.01, or a power above 2, count as that
    limit, with gradients that still reach the parameter. The paper works under a causal mask; the
    symmetric form cannot tell left from right.

    Source: Chi et al. 2022, section 4 (arXiv:2205.09921), and the authors' code.

    Args:
        kernel: The form of the kernel.
        sides: "symmetric": one kernel a head. "separate": one for keys before the query, another
            for keys after it.
    """

    name = "kerple"
    sees_direction = False
    distance_only = True

    def __init__(
        self,
        dims: Dims,
        kernel: Literal["log", "power"] = "log",
        sides: Literal["symmetric", "separate"] = "symmetric",
    ) -> None:
        super().__init__(dims)
        self.kernel, self.sees_direction = kernel, sides == "separate"
        count = 2 if sides == "separate" else 1
        self.p = nn.Parameter(2 * torch.rand(count, dims.n_heads))
        self.a = nn.Parameter(torch.rand(count, dims.n_heads))

    def bias(self, q_index: QueryIndex, k_index: KeyIndex) -> Scores:
        away = relative(q_index, k_index)
        exact = torch.promote_types(self.p.dtype, torch.float32)
        kernel = {"log": self._log, "power": self._power}[self.kernel]
        sides = [
            kernel(away.abs().to(exact), p.to(exact), a.to(exact))
            for p, a in zip(self.p, self.a, strict=True)
        ]
        if len(sides) == 1:
            return sides[0]
        after = rearrange(away > 0, "batch query key -> batch 1 query key")
        return torch.where(after, sides[1], sides[0])

    def _log(
        self,
        distance: Float[Tensor, "batch query key"],
        p: Float[Tensor, " heads"],
        a: Float[Tensor, " heads"],
    ) -> Scores:
        grown = einsum(_within(a), distance, "heads, batch query key -> batch heads query key")
        return -rearrange(_within(p), "heads -> heads 1 1") * grown.log1p()

    def _power(
        self,
        distance: Float[Tensor, "batch query key"],
        p: Float[Tensor, " heads"],
        a: Float[Tensor, " heads"],
    ) -> Scores:
        distance = rearrange(distance, "batch query key -> batch 1 query key")
        raised = distance ** rearrange(_within(p, 2.0), "heads -> heads 1 1")
        return -rearrange(_within(a), "heads -> heads 1 1") * raised


def _within(value: Tensor, most: float | None = None) -> Tensor:
    """The value within its limits, with the gradient of the value itself."""
    return value + (value.clamp(LEAST, most) - value).detach()
