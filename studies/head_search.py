"""Which heads, width, depth and d_ff give the most skill for what a step and a model cost?

Variable: the number of heads, d_model, the number of layers and d_ff, all at once. Optuna's
sampler proposes arms, generation by generation, from what the earlier ones reached.

Hypotheses: none. A search finds candidates; that one of them is better is for a study of
its own to confirm. `head_count` does so for the number of heads.

Protocol: `multi_shift` asks every position for the tokens at its last four offsets at once. Each
arm trains at the same rate for the same number of steps, on the same data as the others of its
seed. `step_milliseconds` is measured in the run: the median over its steps, in CPU time.

Reading: an arm is on the Pareto front where no other one is at least as good in skill, in the time
of a step and in parameters, and better in one of them. Skill is that of a short training, so the
front is about what learns soonest for its cost.
"""

from collections.abc import Sequence
from typing import Any

from studies.cli.command import command
from studies.experiment.study import Budget, Study

LENGTH = 16

SPACE: dict[str, list[int]] = {
    "encoder.n_heads": [1, 2, 4, 8, 16],
    "encoder.d_model": [16, 32, 64, 128],
    "encoder.n_layers": [1, 2, 3],
    "encoder.feedforward.d_ff": [32, 64, 128, 256],
}

START = [(1, 32, 1, 64), (4, 32, 1, 128), (4, 64, 1, 256), (8, 64, 2, 128), (2, 16, 2, 64)]
"""Where the search begins: heads, width, layers, d_ff."""


def arms(points: Sequence[Sequence[int]]) -> dict[str, dict[str, int]]:
    """Arms named as those that are found."""
    found = [dict(zip(SPACE, point, strict=True)) for point in points]
    return {
        ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in one.items()): one
        for one in found
    }


def settings(steps: int, seeds: int, examples: int, generations: int, size: int) -> dict[str, Any]:
    """A budget: how long each arm trains, and how many are tried."""
    return {
        "encoder": {
            "position": {"name": "learned", "max_length": LENGTH},
            "feedforward": {"name": "gelu"},
            "norm_placement": "pre",
            "initializer": "torch_default",
            "embedding_scale": False,
        },
        "perform": "studies.measurements.step_cost:perform",
        "training": {
            "steps": steps,
            "learning_rate": 1e-2,
            "warmup_steps": min(20, steps),
            "train_lengths": [LENGTH, LENGTH],
        },
        "evaluation": {"test_lengths": [LENGTH], "examples": examples},
        "study": {
            "arms": arms(START),
            "seeds": seeds,
            "panels": [{"task": {"name": "multi_shift", "offsets": 4, "alphabet": 16}}],
            "search": {
                "space": SPACE,
                "objectives": {
                    "skill": "maximize",
                    "step_milliseconds": "minimize",
                    "parameters": "minimize",
                },
                "generations": generations,
                "size": size,
            },
        },
    }


STUDY = Study(
    name="head_search",
    question="Which heads, width, depth and d_ff give the most skill for what they cost?",
    text=__doc__ or "",
    variables=tuple(SPACE),
    budgets={
        "smoke": Budget.smoke(settings(3, 1, 16, generations=2, size=2)),
        "quick": Budget(
            "20 arms, some minutes on two cores", settings(150, 2, 256, generations=3, size=5)
        ),
        "standard": Budget(
            "105 arms, about two hours on two cores",
            settings(450, 3, 512, generations=10, size=10),
        ),
    },
)

main = command(STUDY)

if __name__ == "__main__":
    main()
