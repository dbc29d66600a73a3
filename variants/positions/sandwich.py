import torch
from einops import einsum

from variants.dims import Dims
from variants.part import positive
from variants.positions.position import Position, relative
from variants.shapes import KeyIndex, QueryIndex, Scores


class Sandwich(Position):
    r"""The inner product of two sinusoidal encodings as a bias, smaller in each further head.

    $bias_h(i, j) = \frac{H}{8h} \sum_{p=0}^{w/2 - 1} [\cos((i - j)\,base^{-2p/w}) - 1]$ for heads
    h = 1 … H, with w = `width`: it falls about as the logarithm of the distance. The -1, which
    softmax does not see, makes the bias of a token itself 0. Nothing is learned, and left and right
    are alike.

    Source: Chi et al. 2022, section 5 and appendix (arXiv:2212.10356).

    Args:
        width: Channels of the sinusoidal encodings, which no token vector ever meets.
        base: Base of their wavelengths.

    Raises:
        ValueError: If width is odd or below 2, or base is not positive.
    """

    name = "sandwich"
    sees_direction = False
    distance_only = True

    def __init__(self, dims: Dims, width: int = 128, base: float = 10_000.0) -> None:
        super().__init__(dims)
        if width < 2 or width % 2:
            raise ValueError(f"width is an even number, at least 2; got width={width}")
        self.width, self.base = width, positive("base", base)

    def bias(self, q_index: QueryIndex, k_index: KeyIndex) -> Scores:
        heads = self.dims.n_heads
        away = relative(q_index, k_index).double()
        total = torch.zeros_like(away)
        for pair in range(self.width // 2):  # a sum held as it grows: all terms would be large
            total += (away * self.base ** (-2 * pair / self.width)).cos() - 1
        head = torch.arange(1, heads + 1, device=away.device)
        shape = "heads, batch query key -> batch heads query key"
        return einsum(heads / (8.0 * head), total.float(), shape)
