from variants.feedforwards.feedforward import Plain
from variants.shapes import Hidden


class LinearFeedForward(Plain):
    """(W₁x + b₁)W₂ + b₂: the parameters of a plain layer, without its activation.

    An ablation: the layer is one linear map, of rank d_ff at most.

    Source: Dong et al. 2021 (arXiv:2103.03404), on what the nonlinearity does against the loss of
    rank in deep attention.

    Args:
        d_ff: Hidden width; None means 4 d_model.
    """

    name = "linear"

    def activate(self, hidden: Hidden) -> Hidden:
        return hidden
