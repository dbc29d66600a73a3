from variants.norms.norm import Norm
from variants.shapes import States


class NoNorm(Norm):
    """Nothing: x stays as it is, wherever a placement puts a norm. An ablation.

    Source: Zhang et al. 2019 (arXiv:1901.09321), who train deep residual networks so, with an
    initialization of their own.
    """

    name = "none"

    def forward(self, x: States) -> States:
        return x
