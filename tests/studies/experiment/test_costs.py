"""Costs of a run, against formulas worked out by hand."""

import pytest
import torch
from einops import rearrange
from torch import nn

from studies.experiment.match import Costs, costs_of
from studies.training.settings import RunConfig, check_run

D, HEADS, LAYERS, LENGTH, VOCAB, CLASSES = 8, 2, 3, 12, 5, 4


def config(**encoder: object) -> RunConfig:
    return check_run(
        {
            "encoder": {
                "vocab_size": VOCAB,
                "n_classes": CLASSES,
                "d_model": D,
                "n_heads": HEADS,
                "n_layers": LAYERS,
                "position": "none",
                **encoder,
            },
            "task": {"name": "shift", "k": 1, "alphabet": CLASSES},
            "training": {"steps": 7, "batch_size": 3, "train_lengths": [2, LENGTH]},
        }
    )


def parameters(feedforward: int) -> int:
    """Embedding, three blocks with two layer norms each, the final norm, the logits."""
    attention = 4 * (D * D + D)
    block = attention + feedforward + 2 * 2 * D
    return VOCAB * D + LAYERS * block + 2 * D + (D * CLASSES + CLASSES)


def flops(feedforward_weights: int) -> float:
    """Two operations for every weight of a matrix, and for queries × keys and weights × values."""
    attention = 4 * D * D + 2 * LENGTH * D
    return 2.0 * (LAYERS * (attention + feedforward_weights) + D * CLASSES)


TOKENS = 7 * 3 * (2 + LENGTH) / 2


@pytest.mark.parametrize("attention", ["explicit", "sdpa"])
def test_a_plain_encoder_costs_what_its_formula_says(attention: str) -> None:
    wide = 20
    made = config(feedforward={"name": "gelu", "d_ff": wide}, attention=attention)

    assert costs_of(made) == Costs(
        parameters(2 * D * wide + wide + D), flops(2 * D * wide), TOKENS, 7
    )


def test_a_gated_layer_has_three_matrices() -> None:
    wide = 20
    made = config(feedforward={"name": "swiglu", "d_ff": wide})

    assert costs_of(made) == Costs(
        parameters(3 * D * wide + 2 * wide + D), flops(3 * D * wide), TOKENS, 7
    )


def test_a_mask_spares_no_product_that_is_counted() -> None:
    full, causal = config(mask="full"), config(mask="causal")

    assert costs_of(full) == costs_of(causal)


def test_a_learned_table_has_parameters_and_costs_no_product() -> None:
    learned, none = (
        costs_of(config(position=one)) for one in ({"name": "learned", "max_length": 30}, "none")
    )

    assert learned.parameters == (none.parameters or 0) + 30 * D
    assert learned.flops_per_token == none.flops_per_token


class Fused(nn.Module):
    """A model of the user's with torch's own attention, whose kernel torch's counter leaves out."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(VOCAB, D)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = rearrange(self.table(tokens), "batch seq d_head -> batch 1 seq d_head")
        mixed = nn.functional.scaled_dot_product_attention(x, x, x)
        return rearrange(mixed, "batch 1 seq d_head -> batch seq d_head")


def fused(vocab_size: int, n_classes: int) -> nn.Module:
    return Fused()


def test_attention_is_counted_in_any_module() -> None:
    made = check_run(
        {
            "model": "tests.studies.experiment.test_costs:fused",
            "task": {"name": "shift", "k": 1, "alphabet": CLASSES},
            "training": {"train_lengths": [2, LENGTH]},
        }
    )

    assert costs_of(made).flops_per_token == 2 * 2 * LENGTH * D
    assert costs_of(made).parameters == VOCAB * D


def test_empty_tokens_are_tokens() -> None:
    """`duplicate` with answers behind its question has more tokens than symbols."""
    from studies.training.settings import task_of

    made = check_run(
        {
            "model": "tests.studies.experiment.test_costs:fused",
            "task": "duplicate",
            "training": {"steps": 10, "batch_size": 2, "train_lengths": [4, 4]},
        }
    )
    seen = task_of(made.task).sample(torch.Generator().manual_seed(0), 2, 4).tokens

    assert costs_of(made).tokens == 10 * seen.numel()
