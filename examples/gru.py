"""A recurrent network as an arm: any nn.Module joins a study.

    model: examples.gru:build                 # in place of encoder, in a config or an arm's overlay
    model: {name: examples.gru:build, d_model: 64}

`build` takes `vocab_size` and `n_classes` from the task; its other arguments are options. What it
returns is called with tokens (batch, seq) and gives logits (batch, seq, n_classes), or an object
that holds them as `.logits`.
"""

from torch import Tensor, nn


class Gru(nn.Module):
    """Embed, read in both directions, answer at every token (Cho et al. 2014, arXiv:1406.1078)."""

    def __init__(self, vocab_size: int, n_classes: int, d_model: int, n_layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.gru = nn.GRU(d_model, d_model, n_layers, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * d_model, n_classes)

    def forward(self, tokens: Tensor, mask: object = None) -> Tensor:
        states, _ = self.gru(self.embedding(tokens))
        return self.head(states)


def build(vocab_size: int, n_classes: int, d_model: int = 32, n_layers: int = 1) -> nn.Module:
    """The model of a run, initialized by torch's own rules."""
    return Gru(vocab_size, n_classes, d_model, n_layers)
