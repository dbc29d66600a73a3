from collections.abc import Iterable

import torch
from einops import repeat
from jaxtyping import Int
from torch import Tensor

from studies.probes.probe import Probe, ProbeContext
from studies.scoring import Measured, logits_of


class Symmetries(Probe):
    r"""How much the outputs change when the tokens are permuted, or reversed.

    $\|f(\pi x) - \pi f(x)\| / \|f(x) - \bar f(x)\|$ over the logits of a fixed batch at every
    tested length, where the mean $\bar f$ is over the places of a sequence: 0 for a model that
    cannot tell orders apart, about √2 for one that gives unrelated answers. `permutation` has a
    random π for each sequence, `reflection` the reversal. Where a model is read at one place,
    π f(x) is f(x), and the mean is over the sequences of the batch.

    Without positions an encoder commutes with every permutation; with a bias that depends on the
    distance |i - j| alone (symmetric ALiBi) it commutes with the reversal, so that it cannot tell
    left from right.

    Source: follows from the definitions; Haviv et al. 2022 (arXiv:2203.16634), section 5, has
    the first, Press et al. 2021 (arXiv:2108.12409) the bias.
    """

    name = "symmetries"
    metrics = ("permutation", "reflection")

    def __init__(self, examples: int = 64, steps: tuple[int, ...] = ()) -> None:
        super().__init__(steps)
        self.examples = examples

    @torch.no_grad()
    def measure(self, context: ProbeContext) -> Iterable[Measured]:
        for length in context.test_lengths:
            tokens = context.batch(self.examples, length).tokens
            seq = tokens.shape[1]
            generator = context.seeds.generator("evaluation", "permutation", length)
            shuffled = torch.rand(self.examples, seq, generator=generator).argsort(dim=1)
            turned = torch.arange(seq).flip(0).expand(self.examples, seq)
            for metric, order in (("permutation", shuffled), ("reflection", turned)):
                value = broken(context, tokens, order.to(context.device))
                yield Measured("test", length, metric, self.examples, value)


def broken(
    context: ProbeContext, tokens: Int[Tensor, "batch seq"], order: Int[Tensor, "batch seq"]
) -> float | None:
    """How far a model is from commuting with these orders; None where all outputs are the same."""
    before, after = (
        logits_of(context.model(one)).double() for one in (tokens, tokens.gather(1, order))
    )
    by_place = before.ndim > 2
    spread = (before - before.mean(dim=1 if by_place else 0, keepdim=True)).norm()
    if by_place:
        classes = before.shape[-1]
        before = before.gather(1, repeat(order, "batch seq -> batch seq n", n=classes))
    return ((after - before).norm() / spread).item() if spread > 0 else None
