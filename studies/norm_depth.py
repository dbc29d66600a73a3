"""Where should the norms stand in a deep encoder, and what does each place need to train?

Variable: the norm placement (Post-LN, Pre-LN, sandwich, DeepNorm, ReZero), each without warm-up;
the first two with warm-up as well.

Hypotheses: a deep Post-LN encoder fails where a Pre-LN one trains, warm-up mends that, and
two layers do not care; untrained, the gradient of the last layer keeps its size with depth in
Post-LN and falls in Pre-LN. `--describe` lists them as they are judged.

Protocol: `shift` by 3 on sequences of 16 tokens at a constant rate after the warm-up. Nothing that
could hide a failure is on: no clipping, no weight decay, no decay of the rate, and no rate is
tuned, since the range of rates that trains is part of the question. Gradient norms are taken layer
by layer before, during and after training. `untrained` measures the gradient of the last
feed-forward at several depths, with all attention weights alike, as the theory has it.

Reading: skill is 0 for the best guess from the length or the bag of tokens, 1 for a perfect
answer; `steps_to_fit` is the first look at which 99 % of the answers are right, and as long as
training where that never came. `slope` is the exponent of the gradient in the number of layers:
0 keeps its size, -0.5 falls as one over the root.

Sources: Xiong et al. 2020 (arXiv:2002.04745); Wang et al. 2022 (arXiv:2203.00555).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from studies.cli.command import command
from studies.experiment.hypothesis import claim
from studies.experiment.study import Budget, Study

PLACES = ("pre", "post", "sandwich", "deepnorm", "rezero")

ARMS: dict[str, Any] = {
    **{place: {"encoder.norm_placement": place} for place in PLACES},
    **{
        f"{place} + warm-up": {"encoder.norm_placement": place, "training.warmup_steps": 100}
        for place in ("pre", "post")
    },
}


def untrained(models: int) -> dict[str, Any]:
    """Gradients at initialization, each the mean over so many models."""
    return {
        "label": "untrained",
        "arms": list(PLACES),
        "task": {"name": "shift", "k": 1, "alphabet": 99},
        "encoder": {
            "d_model": 128,
            "feedforward": {"name": "relu", "d_ff": 128},
            "initializer": "xavier",
            "embedding_scale": True,
        },
        "training": {"steps": 0, "batch_size": 8, "train_lengths": [32, 32], "until": None},
        "evaluation": {"test_lengths": [32], "probes": []},
        "perform": {
            "name": "studies.measurements.gradient_by_depth:measure",
            "depths": [4, 8, 16, 32],
            "models": models,
        },
    }


TWO, FAST, DEEP = "2 layers, rate 0.003", "6 layers, rate 0.01", "12 layers, rate 0.003"


def trained(layers: int, rate: float, steps: int, arms: list[str] | None = None) -> dict[str, Any]:
    """The panel of a depth and a rate; gradients are looked at early and midway too."""
    probe = {"name": "gradient_norms", "examples": 32, "steps": [steps // 10, steps // 2]}
    return {
        "label": f"{layers} layers, rate {rate:g}",
        "task": {"name": "shift", "k": 3, "alphabet": 8},
        "encoder": {"n_layers": layers},
        "training": {"steps": steps, "learning_rate": rate},
        "evaluation": {"probes": [probe]},
        "arms": arms,
    }


def few_panels(two: int, fast: int, deep: int) -> list[dict[str, Any]]:
    """The cells of the grid that are told apart soonest, each with the arms that it asks about."""
    return [
        trained(2, 3e-3, two, ["pre", "post"]),
        trained(6, 1e-2, fast),
        trained(12, 3e-3, deep, ["pre", "post", "pre + warm-up", "post + warm-up"]),
    ]


claimed = partial(claim, lengths=(16,))

PRIMARY = [
    claimed("deep Post-LN fails", "post < pre", DEEP,
          "Without warm-up a Post-LN encoder of 12 layers does not learn what a Pre-LN one does."),
    claimed("warm-up mends Post-LN", "post + warm-up > post", DEEP,
          "With warm-up the same Post-LN encoder learns."),
    claimed("Pre-LN needs no warm-up", "pre + warm-up ≈ pre", DEEP,
          "A Pre-LN encoder of 12 layers learns as well without warm-up."),
    claimed("two layers do not care", "post ≈ pre", TWO,
          "With two layers Post-LN learns as Pre-LN does, without warm-up."),
    claimed("Post-LN bears lower rates", "post < pre", FAST,
          "Already at 6 layers Post-LN fails at a rate that Pre-LN bears."),
    claimed("Pre-LN gradients fall", "pre < post", "untrained",
          "The gradient of the last layer falls with depth in Pre-LN, not in Post-LN.",
          metric="slope", lengths=(32,), smallest_effect=0.2),
]  # fmt: skip

EXPLORED = [
    claimed("warm-up mends the rate", "post + warm-up > post", FAST,
          "At 6 layers warm-up is enough for Post-LN to bear the rate."),
    *(
        claimed(f"{place} bears the rate", f"{place} > post", FAST,
              f"At 6 layers {place} bears a rate at which Post-LN fails.")
        for place in ("sandwich", "deepnorm", "rezero")
    ),
    claimed("warm-up costs steps", "pre + warm-up > pre", DEEP,
          "Where it is not needed, warm-up delays the fit.",
          metric="steps_to_fit", smallest_effect=20.0),
    claimed("Post-LN is slower", "post + warm-up > pre + warm-up", DEEP,
          "Where both train, Post-LN needs more steps than Pre-LN.",
          metric="steps_to_fit", smallest_effect=20.0),
    claimed("DeepNorm gradients fall", "deepnorm < post", "untrained",
          "The constants of DeepNorm make the gradient of the last layer fall with depth.",
          metric="slope", lengths=(32,), smallest_effect=0.2),
]  # fmt: skip


def settings(
    panels: Sequence[dict[str, Any]], seeds: int, examples: int, models: int = 8
) -> dict[str, Any]:
    """A budget: its panels and seeds, how many sequences are tested and untrained models drawn."""
    return {
        "encoder": {
            "d_model": 32,
            "n_heads": 4,
            "n_layers": 2,
            "position": "sinusoidal",
            "feedforward": {"name": "relu", "d_ff": 128},
            "norm": "layernorm",
            "initializer": "torch_default",
            "embedding_scale": False,
        },
        "training": {
            "batch_size": 64,
            "weight_decay": 0.0,
            "clip_norm": None,
            "schedule": "constant",
            "warmup_steps": 0,
            "train_lengths": [16, 16],
            "until": {"metric": "accuracy", "value": 0.99, "stop": False, "every": 10},
        },
        "evaluation": {"test_lengths": [16], "examples": examples},
        "study": {
            "arms": ARMS,
            "seeds": seeds,
            "panels": [untrained(models), *panels],
            "hypotheses": PRIMARY,
            "explored": EXPLORED,
        },
    }


STUDY = Study(
    name="norm_depth",
    question="Where should the norms stand in a deep encoder, and what does each place need?",
    text=__doc__ or "",
    variables=("encoder.norm_placement", "training.warmup_steps"),
    budgets={
        "smoke": Budget.smoke(settings(few_panels(5, 5, 5), seeds=2, examples=16, models=1)),
        "quick": Budget(
            "an answer in some minutes on two cores",
            settings(few_panels(200, 150, 250), seeds=6, examples=256),
        ),
        "standard": Budget(
            "2 to 24 layers at three rates, some hours on two cores",
            settings(
                [trained(n, rate, 500) for n in (2, 6, 12, 24) for rate in (1e-3, 3e-3, 1e-2)],
                seeds=8,
                examples=512,
            ),
        ),
    },
)

main = command(STUDY)

if __name__ == "__main__":
    main()
