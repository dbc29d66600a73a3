from collections.abc import Iterable, Iterator

import torch
from einops import repeat
from jaxtyping import Bool, Float
from torch import Tensor

from studies.probes.probe import Probe, ProbeContext
from studies.scoring import Measured


class Attention(Probe):
    r"""The entropy of the attention weights, their largest share, and where they lie.

    For each layer l as bin, averaged over heads and real queries: `attention_entropy`
    $-\sum_k a_k \ln a_k$ in nats, and `attention_top` $\max_k a_k$. With `offsets` above 0, for
    each layer l `attention_offset.l`: the mean weight at key - query, with that offset as bin, on
    both sides up to `offsets`.

    Source: Clark et al. 2019 (arXiv:1906.04341).
    """

    name = "attention"
    metrics = ("attention_entropy", "attention_top", "attention_offset")

    def __init__(self, examples: int = 32, offsets: int = 0, steps: tuple[int, ...] = ()) -> None:
        super().__init__(steps)
        self.examples, self.offsets = examples, offsets

    @torch.no_grad()
    def measure(self, context: ProbeContext) -> Iterable[Measured]:
        batch = context.batch(self.examples)
        try:
            weights = context.model(batch.tokens, need_weights=True).weights
        except TypeError as error:
            raise ValueError(
                f"{self.name} needs a model that returns its weights when called with "
                f"need_weights=True; {type(context.model).__name__} does not; leave it out of "
                "evaluation.probes"
            ) from error
        for layer, found in enumerate(weights):
            entropy = torch.special.entr(found.double()).sum(dim=-1)
            top = found.double().amax(dim=-1)
            for metric, value in (("attention_entropy", entropy), ("attention_top", top)):
                mean = _over_real(value, batch.keep)
                yield context.measured(metric, self.examples, mean, layer)
            yield from self._at_offsets(context, layer, found.double(), batch.keep)

    def _at_offsets(
        self,
        context: ProbeContext,
        layer: int,
        weights: Float[Tensor, "batch heads query key"],
        keep: Bool[Tensor, "batch seq"],
    ) -> Iterator[Measured]:
        seq = weights.shape[-1]
        far = min(self.offsets, seq - 1)
        for offset in range(-far, far + 1) if far else ():
            on = torch.diagonal(weights, offset, dim1=-2, dim2=-1)
            queries = keep[:, max(0, -offset) : seq - max(0, offset)]
            mean = _over_real(on, queries)
            yield context.measured(f"attention_offset.{layer}", self.examples, mean, offset)


def _over_real(
    values: Float[Tensor, "batch heads query"], keep: Bool[Tensor, "batch query"]
) -> float:
    """The mean over heads and real queries."""
    real = repeat(keep, "batch query -> batch heads query", heads=values.shape[1])
    return values[real].mean().item()
