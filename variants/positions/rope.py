import math
from typing import Literal

import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor

from variants.dims import Dims
from variants.part import positive
from variants.positions.position import Position
from variants.shapes import KeyIndex, Keys, Queries, QueryIndex, TokenIndex

FAST, SLOW = 32, 1
"""YaRN: pairs that turn this often within the trained length are kept, or are stretched whole."""


class RoPE(Position):
    r"""Rotary position embedding: turn queries and keys by an angle that grows with the index.

    Channel pair p of a head at index t turns by $t\,\omega_p$ with $\omega_p = \theta^{-2p/d}$,
    p = 0 … d/2 - 1, so a score depends on the distance between its query and its key alone. Here
    d counts the channels that turn: the first `fraction` of d_head; the others are left as they
    are.

    Scaling prepares for sequences `factor` = s times as long as those trained on:

    - linear (position interpolation): $\omega_p / s$.
    - ntk: $\theta$ becomes $\theta\,s^{d/(d-2)}$, which keeps fast pairs and stretches slow ones.
    - yarn: pairs that turn at least 32 times within `trained_length` are kept, those that turn
      less than once are divided by s, with a linear ramp over the pairs in between (over pair
      numbers rounded outwards, as in the authors' code); cos and sin are multiplied by
      0.1 ln s + 1, the attention temperature.

    >>> x, index = torch.tensor([[[[1.0, 2.0, 3.0, 4.0]]]]), torch.tensor([[1]])
    >>> for pairing in ("neighbours", "halves"):
    ...     turned, _ = RoPE(Dims(4, 1, 4, 1), pairing=pairing).rotate(x, x, index, index)
    ...     print([round(channel, 4) for channel in turned.flatten().tolist()])
    [-1.1426, 1.9221, 2.9599, 4.0298]
    [-1.9841, 1.9599, 2.4624, 4.0198]
    >>> longer = RoPE(Dims(64, 1, 64, 1), scaling="yarn", factor=16.0, trained_length=2048)
    >>> round(longer.temperature, 5)
    1.27726

    Source: Su et al. 2021, section 3.2.2 (arXiv:2104.09864); linear: Chen et al. 2023
    (arXiv:2306.15595); ntk and yarn: Peng et al. 2023 (arXiv:2309.00071).

    Args:
        theta: Base of the wavelengths.
        pairing: Which channels form a pair: two neighbours (2p, 2p + 1), as in the paper, or
            (p, p + d/2), the two halves, as in GPT-NeoX and Llama. The two are one permutation of
            channels apart.
        fraction: Share of d_head that turns.
        scaling: How frequencies are scaled for longer sequences.
        factor: By how much sequences are to be longer than the trained ones.
        trained_length: The longest trained sequence; yarn alone looks at it.

    Raises:
        ValueError: If the channels that turn are not an even number, a number is out of range, or
            an option has no effect on the chosen scaling.
    """

    name = "rope"
    distance_only = True

    def __init__(
        self,
        dims: Dims,
        theta: float = 10_000.0,
        pairing: Literal["neighbours", "halves"] = "neighbours",
        fraction: float = 1.0,
        scaling: Literal["none", "linear", "ntk", "yarn"] = "none",
        factor: float = 1.0,
        trained_length: int | None = None,
    ) -> None:
        super().__init__(dims)
        self.theta = positive("theta", theta)
        self.turned = _turned(dims, fraction)
        _check_scaling(scaling, factor, trained_length, self.turned)
        self.scaling, self.factor, self.trained_length = scaling, factor, trained_length
        self.temperature = 0.1 * math.log(factor) + 1 if scaling == "yarn" else 1.0
        self.pairs = {"neighbours": "(pair two)", "halves": "(two pair)"}[pairing]
        self.beyond = "extends" if scaling == "none" else "rescales"

    def rotate(
        self, q: Queries, k: Keys, q_index: QueryIndex, k_index: KeyIndex
    ) -> tuple[Queries, Keys]:
        turn_q = self._waves(q_index, q)
        turn_k = turn_q if k_index is q_index else self._waves(k_index, k)
        return self._turn(q, *turn_q), self._turn(k, *turn_k)

    def frequencies(self, device: torch.device | None = None) -> Float[Tensor, " pair"]:
        """By how much each channel pair turns from one index to the next, in radians."""
        width = self.turned
        pair = torch.arange(width // 2, device=device, dtype=torch.float64)
        theta = self.theta
        if self.scaling == "ntk":
            theta = theta * self.factor ** (width / (width - 2))
        kept = self._kept(pair)
        return theta ** (-2 * pair / width) * (kept + (1 - kept) / self.factor)

    def _kept(self, pair: Float[Tensor, " pair"]) -> Float[Tensor, " pair"]:
        """The share of each pair's frequency that is not divided by the factor."""
        if self.scaling == "linear":
            return torch.zeros_like(pair)
        if self.trained_length is None:
            return torch.ones_like(pair)
        first = max(math.floor(self._pair_that_turns(FAST, self.trained_length)), 0)
        last = min(math.ceil(self._pair_that_turns(SLOW, self.trained_length)), self.turned - 1)
        # As in the authors' code, a range that holds no pair is widened a little.
        return 1 - ((pair - first) / max(last - first, 0.001)).clamp(0, 1)

    def _pair_that_turns(self, times: int, length: int) -> float:
        """The number of the pair that turns so many times within a length, as a fraction."""
        return self.turned * math.log(length / (2 * math.pi * times)) / (2 * math.log(self.theta))

    def _waves(
        self, index: TokenIndex, like: Tensor
    ) -> tuple[Float[Tensor, "batch 1 seq pair"], Float[Tensor, "batch 1 seq pair"]]:
        frequency = self.frequencies(index.device)
        angle = einsum(index.to(frequency), frequency, "batch seq, pair -> batch seq pair")
        angle = rearrange(angle, "batch seq pair -> batch 1 seq pair")
        cos, sin = self.temperature * angle.cos(), self.temperature * angle.sin()
        return cos.to(like.dtype), sin.to(like.dtype)

    def _turn(
        self,
        heads: Float[Tensor, "batch heads seq d_head"],
        cos: Float[Tensor, "#batch 1 seq pair"],
        sin: Float[Tensor, "#batch 1 seq pair"],
    ) -> Float[Tensor, "batch heads seq d_head"]:
        turning, rest = heads.split([self.turned, heads.shape[-1] - self.turned], dim=-1)
        first, second = rearrange(turning, f"... {self.pairs} -> two ... pair", two=2)
        turned = [first * cos - second * sin, first * sin + second * cos]
        turned = rearrange(turned, f"two ... pair -> ... {self.pairs}")
        return torch.cat([turned, rest], dim=-1) if rest.shape[-1] else turned


def _turned(dims: Dims, fraction: float) -> int:
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction is the share of a head that turns, up to 1; got {fraction}")
    if fraction == 1 and dims.d_head % 2:
        raise ValueError(
            "rope turns channels in pairs, so d_head must be even; "
            f"got d_head={dims.d_head} (d_model={dims.d_model}, n_heads={dims.n_heads})"
        )
    turned = fraction * dims.d_head
    if turned % 2 or turned < 2:
        raise ValueError(
            "rope turns channels in pairs, so fraction x d_head must be an even number; "
            f"got fraction={fraction} of d_head={dims.d_head}: {turned:g} channels"
        )
    return int(turned)


def _check_scaling(scaling: str, factor: float, trained_length: int | None, turned: int) -> None:
    if scaling == "none" and factor != 1:
        raise ValueError(f"factor has no effect without a scaling; got factor={factor}")
    if scaling != "none" and factor <= 1:
        raise ValueError(f"scaling={scaling} needs a factor above 1; got factor={factor}")
    if (scaling == "yarn") != (trained_length is not None):
        raise ValueError(
            "trained_length goes with scaling=yarn, and with no other; "
            f"got scaling={scaling}, trained_length={trained_length}"
        )
    if trained_length is not None and trained_length < 1:
        raise ValueError(f"trained_length must be at least 1; got {trained_length}")
    if scaling == "ntk" and turned == 2:
        raise ValueError("scaling=ntk has no effect on a single pair: turn at least 4 channels")
