"""Which attention weights a head of a given width can realize."""

from dataclasses import dataclass

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor

from registry.errors import ConfigError, Problem
from studies.training.outcome import Measured, Outcome, Work


def measure(
    work: Work, width: int | None = None, d_model: int | None = None, steps: int = 400
) -> Outcome:
    r"""Fit one head to random attention weights, and tell how far it stays from them.

    $\min_{W_Q, W_K} \|\operatorname{softmax}(X W_Q W_K^\top X^\top / \sqrt{d_k}) - P\|$, where the
    tokens X of n × d_model are standard normal, and each row of P is drawn evenly from all
    distributions over n keys. The scores have rank $d_k$ at most, and softmax is blind to what is
    added to a row: P can be realized exactly from $d_k = n - 1$ on, and hardly ever below.

    Metrics at every tested length n: `error`, the Frobenius distance from P as a share of the norm
    of P; `kl`, the divergence from P in nats, averaged over its rows. A fit by gradients is an
    upper bound of the least error.

    Source: Bhojanapalli et al. 2020, theorem 1 (arXiv:2002.07028), whose columns are the
    distributions that here are rows.

    Args:
        work: The run; its lengths are `evaluation.test_lengths`.
        width: Of the head, $d_k$; None: that of the heads of the run's encoder.
        d_model: Width of the tokens; None: twice the longest tested length. The theorem needs
            one as large as the length.
        steps: Of L-BFGS, at most.
    """
    lengths = work.config.evaluation.test_lengths
    width = _width_of_heads(work) if width is None else width
    d_model = 2 * max(lengths) if d_model is None else d_model
    if width < 1 or steps < 1:
        rule = f"width and steps are 1 or more; got {width} and {steps}"
        raise ConfigError([Problem("perform", rule)])
    if d_model < max(lengths):
        rule = f"{max(lengths)} tokens of full rank need that width or more; got {d_model}"
        raise ConfigError([Problem("perform.d_model", rule, d_model)])
    outcome = Outcome(parameters=2 * d_model * width)
    for n in lengths:
        drawn = draw(work, n, d_model)
        start = work.seeds.generator("init", n, width)
        weights = fit(drawn, width, start, steps)
        outcome.scores += [
            Measured("test", n, "error", n, error(weights, drawn.target)),
            Measured("test", n, "kl", n, divergence(weights, drawn.target)),
        ]
        work.between_batches()
    return outcome


def _width_of_heads(work: Work) -> int:
    encoder = work.config.encoder
    if encoder is None:
        rule = "rank_bottleneck needs a width, or an encoder whose heads have one"
        raise ConfigError([Problem("perform.width", rule)])
    return encoder.d_head or encoder.d_model // encoder.n_heads


@dataclass(frozen=True)
class Drawn:
    """Tokens, and the attention weights that a head should have on them, in float64."""

    tokens: Float[Tensor, "n d_model"]
    target: Float[Tensor, "n n"]


def draw(work: Work, n: int, d_model: int) -> Drawn:
    """The same for every width of a replicate."""
    generator = work.seeds.generator("data", n, d_model)
    tokens = torch.randn(n, d_model, generator=generator, dtype=torch.float64)
    # Exponential variables over their sum are an even draw from the simplex.
    waits = -torch.rand(n, n, generator=generator, dtype=torch.float64).clamp_min(1e-12).log()
    return Drawn(tokens.to(work.device), (waits / waits.sum(-1, keepdim=True)).to(work.device))


def fit(drawn: Drawn, width: int, generator: torch.Generator, steps: int) -> Float[Tensor, "n n"]:
    """The weights of a head, fitted by L-BFGS on the divergence from random projections on."""
    d_model = drawn.tokens.shape[1]
    start = torch.randn(2, d_model, width, generator=generator, dtype=torch.float64)
    # The variance of a product of q and k over √width is then 1.
    to_q, to_k = (start * d_model**-0.5).to(drawn.tokens.device)
    optimizer = torch.optim.LBFGS(
        [to_q.requires_grad_(), to_k.requires_grad_()],
        max_iter=steps,
        history_size=20,
        tolerance_grad=1e-12,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )

    def loss() -> Tensor:
        optimizer.zero_grad()
        chances = scores(drawn.tokens, to_q, to_k).log_softmax(dim=-1)
        value = -(drawn.target * chances).sum(dim=-1).mean()
        value.backward()
        return value

    optimizer.step(loss)
    return scores(drawn.tokens, to_q, to_k).detach().softmax(dim=-1)


def scores(
    tokens: Float[Tensor, "n d_model"],
    to_q: Float[Tensor, "d_model width"],
    to_k: Float[Tensor, "d_model width"],
) -> Float[Tensor, "n n"]:
    """The scores of one head without biases: q·k/√width."""
    q, k = tokens @ to_q, tokens @ to_k
    return einsum(q, k, "query width, key width -> query key") * q.shape[-1] ** -0.5


def error(weights: Float[Tensor, "n n"], target: Float[Tensor, "n n"]) -> float:
    """The Frobenius distance, as a share of the norm of the target."""
    return ((weights - target).norm() / target.norm()).item()


def divergence(weights: Float[Tensor, "n n"], target: Float[Tensor, "n n"]) -> float:
    """The Kullback-Leibler divergence of the weights from the target in nats, mean over rows."""
    return (target * (target / weights).log()).sum(dim=-1).mean().item()
