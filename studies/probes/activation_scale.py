from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from studies.probes.probe import Probe, ProbeContext, blocks_of
from studies.scoring import Measured, hooked


class ActivationScale(Probe):
    r"""The root mean square of the states that leave each layer.

    $\sqrt{\operatorname{mean} x_l^2}$ over the entries at real positions of a fixed batch, with the
    layer l as bin. A layer that is used several times counts once for each use.

    Source: Xiong et al. 2020, lemma 2 (arXiv:2002.04745), on how the stream of a Pre-LN
    encoder grows with depth.
    """

    name = "activation_scale"
    metrics = ("activation_scale",)

    def __init__(self, examples: int = 64, steps: tuple[int, ...] = ()) -> None:
        super().__init__(steps)
        self.examples = examples

    @torch.no_grad()
    def measure(self, context: ProbeContext) -> Iterable[Measured]:
        batch = context.batch(self.examples)
        scales: list[float] = []

        def note(module: Any, inputs: Any, output: Any) -> None:
            states: Tensor = output[0] if isinstance(output, tuple) else output
            scales.append(states[batch.keep].double().square().mean().sqrt().item())

        with hooked(dict.fromkeys(blocks_of(context.model, self.name)), note):
            context.model(batch.tokens)
        for layer, scale in enumerate(scales):
            yield context.measured("activation_scale", self.examples, scale, layer)
