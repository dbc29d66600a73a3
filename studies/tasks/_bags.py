"""Exact laws of the counts of independent uniform symbols."""

import math

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor


def chance_within(
    totals: Int[Tensor, " total"], alphabet: int, rate: float
) -> Float[Tensor, "limit total"]:
    r"""The chance that no symbol occurs more than m times among n tokens, for m = 0..max(totals).

    Counts of n uniform tokens are independent Poisson counts given that their sum is n:

    $P(\max_a c_a \le m \mid n) = P(\sum_a X_a = n, \max_a X_a \le m) / P(\sum_a X_a = n)$

    with $X_a$ of mean rate / alphabet. The sum of truncated counts is a convolution, so a Fourier
    transform gives its law for every n at once. Any rate is right; one near the totals is precise,
    because the transform's error is absolute.
    """
    top = int(totals.max())
    # Long enough that the sums which wrap around have no mass worth counting.
    counts = torch.arange(2 * max(top, math.ceil(rate)) + 64, dtype=torch.float64)
    limits = rearrange(torch.arange(top + 1), "limit -> limit 1")
    truncated = poisson(counts, rate / alphabet) * (counts <= limits)
    sums = torch.fft.irfft(torch.fft.rfft(truncated) ** alphabet, n=len(counts))
    return (sums[:, totals] / poisson(totals.double(), rate)).clamp(0, 1)


def poisson(counts: Float[Tensor, " count"], mean: float) -> Float[Tensor, " count"]:
    """The Poisson probabilities of these counts."""
    return (counts * math.log(mean) - mean - torch.lgamma(counts + 1)).exp()


def mean_largest_count(
    totals: Int[Tensor, " total"], alphabet: int, rate: float
) -> Float[Tensor, " total"]:
    """How often the commonest of the symbols occurs among n uniform tokens, on average."""
    return (1 - chance_within(totals, alphabet, rate)).sum(dim=0)


def share_of_commonest(length: int, alphabet: int) -> float:
    """The mean share of a sequence's commonest symbol: a guess at a token from the bag alone."""
    return mean_largest_count(torch.tensor([length]), alphabet, float(length)).item() / length


def draw_counts(
    generator: torch.Generator, totals: Float[Tensor, " bag"], alphabet: int
) -> Float[Tensor, "bag symbol"]:
    """The counts of each symbol among so many independent uniform tokens, for each bag."""
    left = totals.double()
    counts = []
    for remaining in range(alphabet, 1, -1):
        count = torch.binomial(left, torch.full_like(left, 1 / remaining), generator=generator)
        counts.append(count)
        left = left - count
    return rearrange([*counts, left], "symbol bag -> bag symbol")


def binomial(total: int, probability: float) -> Float[Tensor, " count"]:
    """The probabilities of 0..total successes."""
    counts = torch.arange(total + 1, dtype=torch.float64)
    log_ways = torch.lgamma(torch.tensor(total + 1.0, dtype=torch.float64))
    log_ways = log_ways - torch.lgamma(counts + 1) - torch.lgamma(total - counts + 1)
    odds = counts * math.log(probability) + (total - counts) * math.log1p(-probability)
    return (log_ways + odds).exp()
