from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor

from studies.probes.probe import LAYER, Probe, ProbeContext
from studies.scoring import Measured, batch_loss


class GradientNorms(Probe):
    r"""The norm of the gradient of the mean loss, for the parameters of each layer together.

    $\|\partial L / \partial \theta_l\|_2$ on a fixed batch of the longest trained length, with the
    layer l as bin; parameters outside all layers (embedding, final norm, head) are left out. In a
    model without `blocks`, the whole gradient without a bin.

    Source: Xiong et al. 2020, theorem 1 (arXiv:2002.04745), about the second matrix of the
    feed-forward sublayer of the last layer; `only` with a part of its name singles it out, as
    only parameters count whose names contain it.
    """

    name = "gradient_norms"
    metrics = ("gradient_norm",)

    def __init__(self, only: str = "", examples: int = 64, steps: tuple[int, ...] = ()) -> None:
        super().__init__(steps)
        self.only, self.examples = only, examples

    def measure(self, context: ProbeContext) -> Iterable[Measured]:
        squares: dict[int | None, Tensor] = defaultdict(lambda: torch.zeros(()).double())
        named = {
            name: one
            for name, one in context.model.named_parameters()
            if one.requires_grad and self.only in name
        }
        if not named:
            raise ValueError(f"no parameter of this model has {self.only!r} in its name")
        batch = context.batch(self.examples)
        loss = batch_loss(context.model, batch, context.device)
        gradients = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
        layered = any(LAYER.search(name) for name in named)
        for name, gradient in zip(named, gradients, strict=True):
            found = LAYER.search(name)
            if gradient is not None and (found or not layered):
                squares[int(found[1]) if found else None] += gradient.double().square().sum().cpu()
        for layer, square in sorted(squares.items(), key=lambda pair: pair[0] or 0):
            yield context.measured("gradient_norm", self.examples, square.sqrt().item(), layer)
