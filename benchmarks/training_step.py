"""Cost of a training step, as a ratio to torch's own encoder of the same size.

python benchmarks/training_step.py [--rounds N]

Both train on the same batches of `shift`; rounds alternate between them, the first is not counted,
and the median ratio over the rounds is printed.
"""

import argparse
import statistics
import time
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from registry import build_encoder
from studies.seeds import Seeds
from studies.tasks.shift import Shift
from studies.training.loop import Curves, train
from studies.training.settings import Training

STEPS = 60
SIZES = {"d_model": 32, "n_heads": 4, "n_layers": 2}


class TorchEncoder(nn.Module):
    """Embedding, nn.TransformerEncoder, linear map: what people write by hand."""

    def __init__(self, task: Shift) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            32, 4, 128, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.embedding = nn.Embedding(task.vocab_size, 32)
        self.encoder = nn.TransformerEncoder(
            layer, 2, norm=nn.LayerNorm(32), enable_nested_tensor=False
        )
        self.head = nn.Linear(32, task.n_classes)

    def forward(self, tokens: Tensor, generator: torch.Generator | None = None) -> SimpleNamespace:
        return SimpleNamespace(logits=self.head(self.encoder(self.embedding(tokens))))


def seconds(model: nn.Module, task: Shift) -> float:
    """CPU seconds of a short training."""
    config = Training(steps=STEPS)
    start = time.process_time()
    train(model, task, config, 32, Seeds(0, 0), torch.device("cpu"), Curves(STEPS))
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    task = Shift()
    for position in ("none", "rope", "alibi", "t5_bias"):
        ours = build_encoder(
            SIZES, seed=0, vocab_size=task.vocab_size, n_classes=task.n_classes, position=position
        )
        theirs = TorchEncoder(task)
        pairs = [(seconds(ours, task), seconds(theirs, task)) for _ in range(rounds + 1)][1:]
        ratio = statistics.median(one / two for one, two in pairs)
        least = min(one for one, _ in pairs) / STEPS * 1e3
        print(f"{position:12} {ratio:.2f} x torch's encoder; {least:.1f} ms a step at best")


if __name__ == "__main__":
    main()
