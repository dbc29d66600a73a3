from typing import Literal

import torch
from einops import einsum

from variants.dims import Dims
from variants.positions.position import Position, relative
from variants.shapes import KeyIndex, QueryIndex, Scores

Slopes = Literal["paper", "geometric"] | float | tuple[float, ...]


class ALiBi(Position):
    """Attention with linear biases: a score loses slope x distance.

    With r = key - query and the slope m of a head:

    - symmetric: bias = -m |r|. It cannot tell left from right: reversing the input reverses the
      output.
    - half_offset: -m |r|, but -m (|r| - 1/2) for keys before the query, as in the code of
      Ruoss et al.
    - two_sided: -m |r| for keys before the query, -m' |r| for keys after it. The slopes m' are
      those that the rule gives to twice as many heads and not to this many.
    - causal: m r, as the paper has it. Under a causal mask it is the symmetric form; without one
      it rewards keys for being far ahead.

    The set of slopes of a rule changes with the number of heads, so a study of head counts should
    hold the slopes fixed: one number is the slope of every head.

    >>> here, after = torch.tensor([[0]]), torch.tensor([[1]])
    >>> -ALiBi(Dims(8, 8, 1, 1)).bias(here, after).flatten()[[0, 1, 7]]
    tensor([0.5000, 0.2500, 0.0039])
    >>> -ALiBi(Dims(6, 6, 1, 1)).bias(here, after).flatten()
    tensor([0.2500, 0.0625, 0.0156, 0.0039, 0.5000, 0.1250])

    Source: Press et al. 2022, section 3 (arXiv:2108.12409), and the authors' code;
    half_offset: Ruoss et al. 2023 (arXiv:2305.16843).

    Args:
        sides: How keys before and after the query are treated.
        slopes: "paper": 2^(-8h/H) for h = 1 … H where H is a power of two, otherwise those of the
            largest power of two below H, followed by every other slope of twice that number.
            "geometric": 2^(-8h/H) for any H. A number: every head has this slope. A list: one
            slope a head; for two_sided, those of keys before the query, then of keys after it.

    Raises:
        ValueError: If a slope is not positive, or the list has not the right length.
    """

    name = "alibi"
    sees_direction = False
    distance_only = True

    def __init__(
        self,
        dims: Dims,
        sides: Literal["symmetric", "half_offset", "two_sided", "causal"] = "symmetric",
        slopes: Slopes = "paper",
    ) -> None:
        super().__init__(dims)
        self.sides = sides
        self.slopes = _slopes(slopes, dims.n_heads, sides == "two_sided")
        self.sees_direction, self.causal_only = sides != "symmetric", sides == "causal"

    def bias(self, q_index: QueryIndex, k_index: KeyIndex) -> Scores:
        away = relative(q_index, k_index).to(torch.float32)
        heads = self.dims.n_heads
        before, after = -away.clamp(max=0), away.clamp(min=0)
        if self.sides == "half_offset":
            before = (before - 0.5).clamp(min=0)
        if self.sides == "causal":
            after = -after
        slope = torch.tensor(self.slopes, device=away.device)
        sides = "heads, batch query key -> batch heads query key"
        return -einsum(slope[:heads], before, sides) - einsum(slope[-heads:], after, sides)


def _slopes(slopes: Slopes, n_heads: int, two_sided: bool) -> list[float]:
    """The slopes for keys before the query; for two sides, then those for keys after it."""
    if isinstance(slopes, str):
        rule = {"paper": paper, "geometric": geometric}[slopes]
        first = rule(n_heads)
        return first + [one for one in rule(2 * n_heads) if one not in first] * two_sided
    needed = n_heads * (2 if two_sided else 1)
    given = [*slopes] if isinstance(slopes, tuple) else [float(slopes)] * n_heads
    if len(given) != needed:
        raise ValueError(
            f"a slope a head{' and side' if two_sided else ''}: {needed} for n_heads={n_heads}; "
            f"got {len(given)}"
        )
    if min(given) <= 0:
        raise ValueError(f"slopes are positive: scores fall with distance; got {slopes}")
    return given


def paper(n_heads: int) -> list[float]:
    """The rule of the paper's own code."""
    power = 2 ** (n_heads.bit_length() - 1)
    return geometric(power) + geometric(2 * power)[::2][: n_heads - power]


def geometric(n_heads: int) -> list[float]:
    """2^(-8h/H) for h = 1 … H."""
    return [2.0 ** (-8 * head / n_heads) for head in range(1, n_heads + 1)]
