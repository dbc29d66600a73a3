import torch
from einops import rearrange, reduce
from jaxtyping import Float
from torch import Tensor, nn

from variants.dims import Dims
from variants.norms.norm import Norm, inverse_root
from variants.part import positive
from variants.shapes import States


class BatchNorm(Norm):
    """(x - mean) / √(variance + eps) · weight + bias, each channel over the tokens of the batch.

    In training the statistics are those of the batch, so its tokens influence one another, later
    ones earlier ones too, whatever the mask; running means of them are kept, with the unbiased
    variance. Evaluation uses the running ones, and there each token stands alone. Padding never
    counts: statistics are over real tokens, and a batch without any leaves the running ones alone.
    Statistics are computed in float32 or better.

    Source: Ioffe and Szegedy 2015 (arXiv:1502.03167); Shen et al. 2020 (arXiv:2003.07845) on what
    it does to Transformers.

    Args:
        eps: Added to the variance.
        momentum: Share of the new statistics in the running ones at each step.

    Raises:
        ValueError: If eps is not positive or momentum not in (0, 1].
    """

    name = "batchnorm"
    waives = {
        "training_without_dropout_equals_evaluation": "training normalizes by the batch at hand, "
        "evaluation by running statistics",
    }
    spans_tokens = True

    def __init__(self, dims: Dims, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__(dims)
        if not 0 < momentum <= 1:
            raise ValueError(f"momentum is above 0 and at most 1; got momentum={momentum}")
        self.eps, self.momentum = positive("eps", eps), momentum
        self.weight = nn.Parameter(torch.ones(dims.d_model))
        self.bias = nn.Parameter(torch.zeros(dims.d_model)) if dims.bias else None
        self.register_buffer("running_mean", torch.zeros(dims.d_model))
        self.register_buffer("running_variance", torch.ones(dims.d_model))

    def forward(self, x: States) -> States:
        exact = x.to(torch.promote_types(x.dtype, torch.float32))
        if self.training:
            mean, variance = self._of_batch(exact)
        else:
            mean, variance = self.running_mean, self.running_variance
        normed = ((exact - mean) * inverse_root(variance + self.eps)).to(x.dtype) * self.weight
        return normed if self.bias is None else normed + self.bias

    def _of_batch(self, x: States) -> tuple[Float[Tensor, " d_model"], Float[Tensor, " d_model"]]:
        """Mean and biased variance of the real tokens, which also join the running ones."""
        tokens = rearrange(x, "... d_model -> (...) d_model")
        share = torch.ones_like(tokens[:, :1])
        if self.real is not None:
            share = rearrange(self.real, "batch seq -> (batch seq) 1").to(tokens)
        count = reduce(share, "token 1 -> ", "sum")
        share = share / count.clamp(min=1)
        mean = reduce(share * tokens, "token d_model -> d_model", "sum")
        variance = reduce(share * (tokens - mean).square(), "token d_model -> d_model", "sum")
        with torch.no_grad():
            step = self.momentum * (count > 0)
            unbiased = variance * count / (count - 1).clamp(min=1)
            self.running_mean += step * (mean - self.running_mean)
            self.running_variance += step * (unbiased - self.running_variance)
        return mean, variance
