"""The protocol of Ruoss et al. 2023 (arXiv:2305.16843) for extrapolation: scaled, and whole.

Sequences of a few symbols, answers read at appended empty tokens, Post-LN and ReLU. STANDARD is
scaled to two cores: 3 layers in place of 5, batches of 64 in place of 128, lengths up to 20 in
place of 40, 2,500 steps with a warm-up and a falling rate in place of two million at a constant
one, no dropout, random positions below 512 in place of 2,048; even pairs alone, and the encodings
that a claim names, so that an hour is enough; of rates that fit as well the middle one is taken,
where theirs is the best of all. PAPER has their sizes; what still differs is told
with their table (`studies.published.load("ruoss_2023").protocol`).
"""

from typing import Any

from studies.experiment.hypothesis import Hypothesis

EVEN_PAIRS = {"name": "even_pairs", "answer_at": "appended"}
BUCKET_SORT = {"name": "bucket_sort", "alphabet": 5, "answer_at": "appended"}
REVERSE = {"name": "reverse", "alphabet": 2, "answer_at": "appended"}


def arms(max_length: int) -> dict[str, Any]:
    """Return their encodings; random positions are drawn below max_length."""
    sines = {"name": "sinusoidal", "layout": "concatenated"}
    plain: dict[str, Any] = {
        "none": "none",
        "sinusoidal": sines,
        "learned": "learned",
        "rope": "rope",
        "alibi": {"name": "alibi", "sides": "half_offset"},
        "transformer_xl": "transformer_xl",
    }
    inner = {name: plain[name] for name in ("sinusoidal", "rope", "transformer_xl")}
    randomized = {
        f"randomized_{name}": {"name": "randomized", "inner": one, "max_length": max_length}
        for name, one in inner.items()
    }
    return {name: {"encoder.position": one} for name, one in {**plain, **randomized}.items()}


def claims(*lengths: int) -> list[Hypothesis]:
    """Return the claims of their Table 1 about even pairs, beyond the trained lengths."""

    def carries(arm: str, against: str, text: str, **other: Any) -> Hypothesis:
        relation = "like" if other.get("direction") == "same" else "before"
        name = f"{arm} {relation} {against}"
        return Hypothesis(name, text, arm, against, "even_pairs", lengths, **other)

    return [
        carries("transformer_xl", "sinusoidal", "Relative positions carry even pairs."),
        carries("alibi", "sinusoidal", "A preference for near tokens carries even pairs."),
        carries("rope", "sinusoidal", "Rotation loses even pairs as sinusoids do.",
                direction="same"),
        carries("randomized_sinusoidal", "sinusoidal", "Random positions carry sinusoids."),
        carries("randomized_rope", "rope", "Random positions carry rotation."),
        carries("randomized_transformer_xl", "transformer_xl",
                "Random positions carry relative positions further."),
    ]  # fmt: skip


STANDARD: dict[str, Any] = {
    "encoder": {
        "d_model": 64,
        "n_heads": 8,
        "n_layers": 3,
        "feedforward": {"name": "relu", "d_ff": 256},
        "norm": "layernorm",
        "norm_placement": "post",
        "initializer": "torch_default",
        "embedding_scale": False,
    },
    "training": {
        "steps": 2500,
        "batch_size": 64,
        "weight_decay": 0.0,
        "clip_norm": 1.0,
        "schedule": "linear",
        "warmup_steps": 100,
        "final_rate": 0.1,
        "train_lengths": [2, 20],
    },
    "evaluation": {"test_lengths": [20, 21, 22, 24, 30, 40, 60, 100], "examples": 512},
    "study": {
        "arms": {name: arm for name, arm in arms(512).items() if name not in ("none", "learned")},
        "seeds": 6,
        "learning_rates": [3e-4, 1e-3, 3e-3],
        # At the highest rate an encoding may fit best on the tuning seed and on no other at all.
        "ties": "middle",
        "panels": [{"task": EVEN_PAIRS}],
        "hypotheses": claims(40, 60, 100),
    },
}

PAPER: dict[str, Any] = {
    "encoder": {
        **STANDARD["encoder"],
        "n_layers": 5,
        "initializer": {"name": "lecun", "table_std": 0.02},
        "embedding_scale": True,
        "dropout": {"embedding": 0.1, "weights": 0.0, "sublayer": 0.1},
    },
    "training": {
        "steps": 2_000_000,
        "batch_size": 128,
        "weight_decay": 0.0,
        "clip_norm": 1.0,
        "schedule": "constant",
        "warmup_steps": 0,
        "train_lengths": [2, 40],
    },
    "evaluation": {"test_lengths": [40, 41, 42, 50, 60, 80, 100, 200, 300, 400, 500]},
    "study": {
        "arms": arms(2048),
        "seeds": 10,
        "learning_rates": [1e-4, 3e-4, 5e-4],
        "panels": [
            {"task": EVEN_PAIRS},
            {"task": BUCKET_SORT},
            {"task": REVERSE},
            {"task": {"name": "missing_duplicate", "alphabet": 2}},
            {"task": {"name": "duplicate", "alphabet": 2}},
            {"task": {"name": "odds_first", "alphabet": 2}},
            {"task": {"name": "parity", "answer_at": "appended"}},
            {"task": "cycle_navigation"},
            {"task": "stack_manipulation"},
        ],
        "hypotheses": claims(41, 42, 50, 60, 80, 100, 200, 300, 400, 500),
    },
}
