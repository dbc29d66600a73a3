import torch
from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor, nn

from variants.dims import Dims
from variants.part import positive
from variants.positions.position import Position
from variants.shapes import KeyIndex, Keys, Queries, QueryIndex, Scores, TokenIndex


class TransformerXL(Position):
    r"""Relative positions in four terms: content with content, and with the distance.

    score(i, j) = [q_i·k_j + u·k_j + (q_i + v)·W R_{i-j}] / √d_head, where R_t holds
    $\sin(t\,\omega_p)$ and then $\cos(t\,\omega_p)$ with $\omega_p = base^{-2p/d}$,
    p = 0 … d/2 - 1, d = d_model rounded up to an even number; u and v are learned vectors for each
    head and W is a learned linear map to all heads.

    No R_{i-j} is ever held for a pair of tokens: by the addition theorems (q_i + v)·W R_{i-j} is
    the product of a vector of the query, turned by its index, and the waves of the key's index.
    So any indices will do, and memory is that of the scores.

    u and v start normal with standard deviation 0.02; the initializer fills W. The paper has one W
    a layer: `position_per_layer: true` does so, and gives each layer its own u and v as well.

    Source: Dai et al. 2019, section 3.3 (arXiv:1901.02860).

    Raises:
        ValueError: If base is not positive.
    """

    name = "transformer_xl"
    distance_only = True

    def __init__(self, dims: Dims, base: float = 10_000.0) -> None:
        super().__init__(dims)
        self.base = positive("base", base)
        self.width = dims.d_model + dims.d_model % 2
        self.to_heads = nn.Linear(self.width, dims.n_heads * dims.d_head, bias=False)
        self.u = nn.Parameter(0.02 * torch.randn(dims.n_heads, dims.d_head))
        self.v = nn.Parameter(0.02 * torch.randn(dims.n_heads, dims.d_head))

    def scores(self, q: Queries, k: Keys, q_index: QueryIndex, k_index: KeyIndex) -> Scores:
        exact = torch.promote_types(q.dtype, torch.float32)
        content = einsum(
            self.u.to(exact), k.to(exact), "heads d_head, batch heads key d_head -> batch heads key"
        )
        distance = einsum(
            self._turned(q.to(exact), q_index),
            rearrange(self._waves(k_index, exact), "two batch key pair -> batch key (two pair)"),
            "batch heads query width, batch key width -> batch heads query key",
        )
        content = rearrange(content, "batch heads key -> batch heads 1 key")
        return (content + distance) * self.dims.d_head**-0.5

    def _turned(self, q: Queries, index: QueryIndex) -> Float[Tensor, "batch heads query width"]:
        """What each query wants of the waves of a key: s sin(a - b) + c cos(a - b) at angle b."""
        weight = rearrange(
            self.to_heads.weight, "(heads d_head) width -> heads d_head width", d_head=q.shape[-1]
        )
        wanted = einsum(
            q + rearrange(self.v, "heads d_head -> heads 1 d_head"),
            weight.to(q.dtype),
            "batch heads query d_head, heads d_head width -> batch heads query width",
        )
        halves = "batch heads query (two pair) -> two batch heads query pair"
        s, c = rearrange(wanted, halves, two=2)
        waves = self._waves(index, q.dtype)
        sin, cos = rearrange(waves, "two batch query pair -> two batch 1 query pair")
        turned = [c * sin - s * cos, s * sin + c * cos]
        return rearrange(turned, "two batch heads query pair -> batch heads query (two pair)")

    def _waves(self, index: TokenIndex, dtype: torch.dtype) -> Float[Tensor, "2 batch seq pair"]:
        """Sine and cosine of the angle of each index and pair."""
        pair = torch.arange(self.width // 2, device=index.device, dtype=torch.float64)
        frequency = self.base ** (-2 * pair / self.width)
        angle = einsum(index.to(frequency), frequency, "batch seq, pair -> batch seq pair")
        return torch.stack([angle.sin(), angle.cos()]).to(dtype)
