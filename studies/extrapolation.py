"""Which position encodings still work on sequences longer than they were trained on?

Variable: the position encoding; everything else is the same for every arm.

Hypotheses: an encoding that looks a fixed distance back (rope, t5_bias) carries `shift` to longer
sequences, and one that prefers near tokens (alibi) carries `nearest_marked`; absolute encodings
(sinusoidal, learned) carry neither. `--describe` lists them as they are judged.

Protocol: each arm trains from scratch on sequences of 2 to 16 tokens, fresh data at every step.
Tuning: every arm tries the same learning rates on one seed apart; the one with the lowest
validation nll at trained lengths is chosen, so longer lengths have no say. Confirming: fresh
seeds at that rate. Every arm sees the same data and the same test sets in each replicate.

Budgets: `smoke` and `quick` ask this; `standard` and `paper` follow Ruoss et al. 2023
(`studies/published/ruoss_protocol.py` tells what is scaled), with random positions among the arms.

Axes: what else decides, one variable each, by `--axis`: readout_place, training_lengths,
random_positions, log_length, causal_mask.

Reading: skill is 0 for the best guess from the length or the bag of tokens, 1 for a perfect
answer. An arm whose skill at the longest trained length is below the threshold did not learn;
of the others, those that stay above it at longer lengths hold.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from studies.axes import AXES
from studies.cli.command import command
from studies.experiment.hypothesis import Hypothesis, claim
from studies.experiment.study import Budget, Study
from studies.published.ruoss_protocol import PAPER, STANDARD

if TYPE_CHECKING:
    from studies.experiment.arms import Arm
    from studies.experiment.settings import Settings

ARMS = ["none", "sinusoidal", "learned", "rope", "alibi", "t5_bias"]

SHIFT = {"name": "shift", "k": 3, "alphabet": 8}
NEAREST_MARKED = {"name": "nearest_marked", "alphabet": 8, "mark_probability": 0.15}


def claims(*lengths: int) -> list[Hypothesis]:
    """The hypotheses at lengths beyond the trained ones."""
    claimed = partial(claim, lengths=lengths)
    return [
        claimed("rope carries shift", "rope > sinusoidal", "shift",
              "Rotating queries and keys carries a look back by a fixed distance."),
        claimed("t5_bias carries shift", "t5_bias > sinusoidal", "shift",
              "A learned bias per distance carries a look back by a fixed distance."),
        claimed("learned is like sinusoidal", "learned ≈ sinusoidal", "shift",
              "Two absolute encodings lose the look back alike."),
        claimed("alibi carries nearest_marked", "alibi > sinusoidal", "nearest_marked",
              "A preference for near tokens carries a search for the nearest mark."),
        claimed("alibi before rope", "alibi > rope", "nearest_marked",
              "A preference for near tokens carries that search further than rotation does."),
    ]  # fmt: skip


QUICK: dict[str, Any] = {
    "encoder": {
        "d_model": 32,
        "n_heads": 4,
        "n_layers": 2,
        "feedforward": {"name": "gelu", "d_ff": 128},
        "norm": "layernorm",
        "norm_placement": "pre",
        "initializer": "torch_default",
        "embedding_scale": False,
    },
    "training": {
        "batch_size": 64,
        "weight_decay": 0.01,
        "clip_norm": 1.0,
        "schedule": "linear",
        "warmup_steps": 50,
        "final_rate": 0.1,
        "train_lengths": [2, 16],
    },
    "evaluation": {"test_lengths": [16, 17, 18, 20, 24, 32, 64, 128], "examples": 256},
    "study": {
        "arms": ARMS,
        "seeds": 8,
        "learning_rates": [1e-3, 3e-3, 1e-2],
        "panels": [{"task": SHIFT, "steps": 400}, {"task": NEAREST_MARKED, "steps": 500}],
        "hypotheses": claims(32, 64, 128),
    },
}

SMOKE: dict[str, Any] = {
    **QUICK,
    "training": {**QUICK["training"], "warmup_steps": 5},
    "evaluation": {"test_lengths": [16, 32], "examples": 64},
    "study": {
        **QUICK["study"],
        "seeds": 2,
        "learning_rates": [3e-3, 1e-2],
        "panels": [{"task": SHIFT, "steps": 20}, {"task": NEAREST_MARKED, "steps": 20}],
        "hypotheses": claims(32),
    },
}


def complete(roots: Mapping[str, Any]) -> Mapping[str, Any]:
    """A learned table gets a row for every index of a trained or tested sequence."""
    if roots["encoder"].get("position") != "learned":
        return roots
    from registry.choices import resolve
    from studies.training.settings import task_of

    lengths = (roots["training"]["train_lengths"][1], *roots["evaluation"]["test_lengths"])
    rows = task_of(resolve("task", roots["task"])).seq(max(lengths))
    table = {"name": "learned", "max_length": rows}
    return {**roots, "encoder": {**roots["encoder"], "position": table}}


def remark(arm: "Arm", settings: "Settings") -> str:
    """What must be said beside the results of an arm."""
    if arm.name != "learned":
        return ""
    return f"(Its rows beyond {settings.training.train_lengths[1]} are untrained.)"


STUDY = Study(
    name="extrapolation",
    question="Which position encodings still work on sequences longer than they were trained on?",
    text=__doc__ or "",
    variables=("encoder.position",),
    budgets={
        "smoke": Budget.smoke(SMOKE),
        "quick": Budget("an answer in about six minutes on two cores", QUICK),
        "standard": Budget(
            "even pairs as Ruoss et al. 2023, scaled to an hour on two cores", STANDARD
        ),
        "paper": Budget("nine tasks at the sizes of Ruoss et al. 2023, weeks on a GPU", PAPER),
    },
    axes=AXES,
    complete=complete,
    remark=remark,
)

main = command(STUDY)

if __name__ == "__main__":
    main()
