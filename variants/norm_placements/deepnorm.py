from variants.dims import Dims
from variants.norm_placements.norm_placement import MakeNorm, NormPlacement, Sublayer
from variants.shapes import Stream


class DeepNorm(NormPlacement):
    """norm(αx + f(x)), where α = (2N)^(1/4) for N layers: Post-LN with a stronger stream.

    Its initialization goes with it: the feed-forward matrices and the value and output maps of the
    attention start times β = (8N)^(-1/4), whatever the initializer, unless that scales by depth
    itself. α and β are those of an encoder without a decoder. No final norm.

    Source: Wang et al. 2022, section 3 (arXiv:2203.00555).
    """

    name = "deepnorm"

    def __init__(self, dims: Dims, make_norm: MakeNorm) -> None:
        super().__init__(dims, make_norm)
        self.after = make_norm()
        self.alpha = (2 * dims.n_layers) ** 0.25
        self.beta = (8 * dims.n_layers) ** -0.25

    def forward(self, x: Stream, sublayer: Sublayer) -> Stream:
        return self.after(self.alpha * x + sublayer(x))

    def gain(self, path: str) -> float:
        scaled = (".feedforward.", ".attention.to_v", ".attention.to_model")
        return self.beta if any(part in path for part in scaled) else 1.0
