"""Capture encoders whole with torch.compile, and print what happened.

Run as a program of its own: the checks of shapes that tests add cannot be captured.
"""

import json
import sys
from typing import Any

import torch

from registry import build_encoder

LENGTHS = (5, 8, 11, 16, 23)


def capture(config: dict[str, Any]) -> dict[str, float]:
    """How many graphs the lengths needed, and how far the outputs are from the plain ones."""
    sizes = {"vocab_size": 10, "d_model": 16, "n_heads": 2, "n_classes": 3, "pad_id": 0}
    training = config.pop("training")
    encoder = build_encoder({**sizes, **config}, seed=0).train(training)
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()
    captured = torch.compile(encoder, backend=backend, fullgraph=True)
    generator, difference = torch.Generator().manual_seed(0), 0.0
    for length in LENGTHS:
        tokens = torch.randint(10, (3, length), generator=generator)
        logits = []
        for one in (captured, encoder):
            torch.manual_seed(length)  # what random positions are drawn from in training
            logits.append(one(tokens).logits)
        difference = max(difference, (logits[0] - logits[1]).abs().max().item())
    return {"graphs": len(graphs), "difference": difference}


if __name__ == "__main__":
    torch.set_num_threads(1)
    configs = json.load(sys.stdin)
    json.dump({name: capture(config) for name, config in configs.items()}, sys.stdout)
