"""Small models for probes to look into."""

from typing import Any

import torch
from torch import Tensor, nn

from registry import build_encoder
from studies.probes.probe import ProbeContext
from studies.seeds import Seeds
from studies.training.settings import check_run, task_of


def context(task: Any = "shift", **encoder: Any) -> ProbeContext:
    """An encoder as it is initialized, before a task."""
    made = task_of(check_run({"task": task}).task)
    sizes = {"vocab_size": made.vocab_size, "n_classes": made.n_classes, "readout": made.readout}
    config = check_run(
        {
            "encoder": {"d_model": 16, "n_heads": 2, "n_layers": 2, **sizes, **encoder},
            "task": task,
            "training": {"train_lengths": [4, 7]},
            "evaluation": {"test_lengths": [7, 10], "examples": 24, "batch_size": 10},
        }
    )
    assert config.encoder is not None
    model = build_encoder(config.encoder, seed=3).eval()
    return ProbeContext(model, made, config, Seeds(0, 0), torch.device("cpu"))


class Gru(nn.Module):
    """A model that is no encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.gru = nn.Embedding(9, 6), nn.GRU(6, 8, batch_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.gru(self.table(tokens))[0]


def gru() -> ProbeContext:
    """The same before a model that is no encoder."""
    made = context()
    return ProbeContext(Gru().eval(), made.task, made.config, made.seeds, made.device)
