"""Measure how much of its input a normalization leaves for γ and β to bring back."""

import torch
from einops import reduce
from jaxtyping import Float
from torch import Tensor

from registry.choices import build_part, resolve
from studies.training.outcome import Measured, Outcome, Work
from variants.dims import Dims

Tokens = Float[Tensor, "token d_model"]


def measure(work: Work, norm: str = "layernorm", d_model: int = 32, spread: float = 0.0) -> Outcome:
    r"""Fit γ and β to undo a norm, for as many tokens as each of `evaluation.test_lengths`.

    $\hat x_{tc} = \gamma_c \, n(x_t)_c + \beta_c$ with the γ and β that make the squared error
    smallest over the tokens, channel by channel: no training could find better ones.

    Metric: `recovered`, $1 - \sum (x - \hat x)^2 / \sum x^2$; 1 where the norm is undone.

    Args:
        work: The run; its replicate draws the tokens.
        norm: A norm; `none` is undone by γ = 1 and β = 0.
        d_model: Channels.
        spread: Tokens are standard normal vectors times $e^{spread \cdot z}$, z standard normal
            and one a token: 0 gives all the same size but for chance.
    """
    part = build_part("norm", resolve("norm", norm), Dims(d_model, 1, d_model, 1)).double()
    outcome = Outcome(parameters=0)
    for count in work.config.evaluation.test_lengths:
        tokens = draw(work, count, d_model, spread)
        with torch.no_grad():
            found = recovered(tokens, part(tokens))
        outcome.scores.append(Measured("test", count, "recovered", count, found))
        work.between_batches()
    return outcome


def draw(work: Work, count: int, d_model: int, spread: float) -> Tokens:
    """Random tokens in float64: a function of the replicate and the arguments."""
    generator = work.seeds.generator("data", count, d_model)
    direction = torch.randn(count, d_model, generator=generator, dtype=torch.float64)
    size = torch.randn(count, 1, generator=generator, dtype=torch.float64)
    return direction * (spread * size).exp()


def recovered(tokens: Tokens, normed: Tokens) -> float:
    """The share of the tokens that the best γ and β bring back from the normed ones."""
    around, wanted = normed - normed.mean(dim=0), tokens - tokens.mean(dim=0)
    variance = reduce(around.square(), "token channel -> channel", "sum")
    covariance = reduce(around * wanted, "token channel -> channel", "sum")
    # A channel without variance is a constant, which β gives alone.
    gain = torch.where(variance > 0, covariance / variance.clamp_min(1e-300), 0.0)
    error = wanted - gain * around
    return 1 - (error.square().sum() / tokens.square().sum()).item()
