"""What a task certifies about itself: its floors, and a certificate for each length."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from einops import rearrange, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Floors:
    """The accuracy of the best predictors that see almost nothing.

    `constant` always gives one class. `index` sees the output's index and the length. `bag` sees
    the tokens of the sequence without their order, and not the index. A model without positions
    can pass the bag's floor, because it also sees the token at the place where it answers.
    """

    constant: float
    index: float
    bag: float

    @property
    def highest(self) -> float:
        """The highest floor below 1, from which skill is measured.

        A floor of 1 means that its predictor solves the task (majority from the bag of tokens),
        so it is no floor for a model; skill is measured from the next lower one.
        """
        below = [floor for floor in (self.constant, self.index, self.bag) if floor < 1 - 1e-9]
        return max(below, default=0.0)


@dataclass(frozen=True)
class Certificate:
    """What one length of a task is like, measured on a seeded sample.

    `solver_accuracy` compares `solve` with the sampled targets and must be 1. `class_shares` are
    the shares of the classes among the scored targets, `scored_share` the share of targets that
    are scored.
    """

    length: int
    solver_accuracy: float
    class_shares: tuple[float, ...]
    floors: Floors
    scored_share: float

    @property
    def largest_share(self) -> float:
        """The share of the commonest class."""
        return max(self.class_shares)


UNSCORED = -100
REARRANGEMENTS = 32


def score_of_choice(
    chosen_on: Int[Tensor, "group answers"], scored_on: Int[Tensor, "group others"], n_classes: int
) -> float:
    """The accuracy on some answers of each group's commonest class among other answers of it."""
    best = tally(chosen_on, n_classes).argmax(dim=1, keepdim=True)
    counts = tally(scored_on, n_classes)
    return (counts.gather(1, best).sum() / counts.sum().clamp(min=1)).item()


def tally(
    targets: Int[Tensor, "row answers"],
    n_classes: int,
    group: Int[Tensor, " row"] | None = None,
    groups: int | None = None,
) -> Int[Tensor, "group classes"]:
    """How often each class is the answer in each group; unscored answers do not count.

    Each row is a group of its own, unless `group` tells the number of its group.
    """
    group = torch.arange(len(targets)) if group is None else group
    groups = len(targets) if groups is None else groups
    cells = (rearrange(group * n_classes, "row -> row 1") + targets)[targets != UNSCORED]
    counts = torch.bincount(cells, minlength=groups * n_classes)
    return rearrange(counts, "(group classes) -> group classes", group=groups)


def constant_and_index(
    chosen_on: Int[Tensor, "chosen ..."], scored_on: Int[Tensor, "scored ..."], n_classes: int
) -> tuple[float, float]:
    """The floors of a constant and of the index, chosen on some answers and scored on others."""
    constant, index = (
        score_of_choice(rearrange(chosen_on, groups), rearrange(scored_on, groups), n_classes)
        for groups in ("batch ... -> 1 (batch ...)", "batch ... -> (...) batch")
    )
    # A constant is also a choice for every index.
    return constant, max(constant, index)


def answers_of_rearrangements(
    solve: Callable[[Int[Tensor, "batch seq"]], Int[Tensor, "batch ..."]],
    tokens: Int[Tensor, "bag seq"],
    keep: Bool[Tensor, "bag seq"],
    generator: torch.Generator,
) -> tuple[Int[Tensor, "bag answers"], Int[Tensor, "bag answers"]]:
    """One group a bag, twice: the answers to two sets of random orders of the bag's tokens."""
    many = repeat(tokens, "bag seq -> (bag order) seq", order=REARRANGEMENTS)
    real = repeat(keep, "bag seq -> (bag order) seq", order=REARRANGEMENTS)
    noise: Float[Tensor, "many seq"] = torch.rand(many.shape, generator=generator)
    # Padding keeps to the right end.
    order = noise.masked_fill(~real, 2.0).argsort(dim=1)
    answers = solve(many.gather(1, order))
    first, second = rearrange(
        answers, "(bag two half) ... -> two bag (half ...)", two=2, half=REARRANGEMENTS // 2
    )
    return first, second


def score_of_bags(
    tokens: Int[Tensor, "batch seq"], targets: Int[Tensor, "batch ..."], n_classes: int
) -> float:
    """The accuracy of a choice for each bag of tokens, made on half of the sequences.

    For tasks that prefer some orders of a bag; it needs many sequences of the same bag.
    """
    counts = torch.zeros(len(tokens), int(tokens.max()) + 1, dtype=torch.long)
    bags, bag = counts.scatter_add(1, tokens, torch.ones_like(tokens)).unique(
        dim=0, return_inverse=True
    )
    labels = rearrange(targets, "batch ... -> batch (...)")
    chosen_on, scored_on = (
        tally(labels[half::2], n_classes, bag[half::2], len(bags)) for half in (0, 1)
    )
    best = chosen_on.argmax(dim=1, keepdim=True)
    return scored_on.gather(1, best).sum().item() / max(scored_on.sum().item(), 1)


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
    odds = counts * math.log(probability) + (total - counts) * math.log1p(-probability)
    return (log_choose(total, counts) + odds).exp()


def chance_of_fall(
    depth: Int[Tensor, "depth 1"], up: Float[Tensor, " walk"], down: Float[Tensor, " walk"]
) -> Float[Tensor, "depth walk"]:
    r"""The chance that a walk, its steps in random order, ever stands `depth` below its start.

    By reflection it is $\binom{N}{d - m} / \binom{N}{d}$ with d steps down of N and depth m,
    and 1 where the walk ends that low anyway.
    """
    log_ratio = log_choose(up + down, down - depth) - log_choose(up + down, down)
    return torch.where(down - up >= depth, 1.0, log_ratio.exp())


def log_choose(
    total: Float[Tensor, "..."] | int, chosen: Float[Tensor, "..."]
) -> Float[Tensor, "..."]:
    """The logarithm of the binomial coefficient, -inf where it is 0."""
    total = torch.as_tensor(total, dtype=torch.float64)
    possible = (chosen >= 0) & (chosen <= total)
    chosen = torch.where(possible, chosen, 0.0)
    log = torch.lgamma(total + 1) - torch.lgamma(chosen + 1) - torch.lgamma(total - chosen + 1)
    return torch.where(possible, log, -math.inf)
