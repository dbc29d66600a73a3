"""Is *this* encoder right?

Four layers, from the outside in: structure (shapes, heads), numerics (finite numbers, gradients,
attention whose rows sum to one, rows that may see nothing), learning (a loss that falls from a
fixed seed, a hundred examples learned by heart), parity (the outputs and the mask meaning of
torch's own `nn.TransformerEncoderLayer`, where the config has a counterpart there).

Protocol: the model is given the sizes of a task, first and last: 12 symbols of 62, read at an empty
token before them (behind them, where a mask hides what comes later). Training takes 80 steps of
64 sequences at a rate of 3e-4; the examples that are learned by heart are 100, at 1e-3, in at most
400 steps.

Reading: each check passes, fails with what to suspect first, or cannot be asked, with the reason.
Eighty steps do not teach a small encoder this task: the preset's loss falls from 0.84 to 0.72 nats,
where an even guess has 0.69. That it falls says that gradients reach the weights and that steps go
the right way, and no more. What was found is stored with the run.
"""

from typing import TYPE_CHECKING, Any

from studies.experiment.study import Budget, Study

if TYPE_CHECKING:
    pass

TASK = {"name": "first_last_match", "alphabet": 62, "answer_at": "prepended"}
PERFORM = {"name": "studies.acceptance_checks.accept:accept"}

SETTINGS: dict[str, Any] = {
    "perform": PERFORM,
    "training": {
        "steps": 80,
        "batch_size": 64,
        "learning_rate": 3e-4,
        "schedule": "constant",
        "warmup_steps": 0,
        "train_lengths": [12, 12],
    },
    "evaluation": {"test_lengths": [12]},
    "study": {"arms": {"given": {}}, "seeds": 1, "panels": [{"label": "acceptance", "task": TASK}]},
}

METRICS = {
    "passed": "checks that passed",
    "failed": "checks that failed",
    "loss_before": "loss before training, in nats",
    "loss_after": "loss after it",
    "accuracy": "accuracy after it",
    "overfit_accuracy": "accuracy on what is learned by heart",
    "overfit_steps": "steps until that",
    "parity_error": "largest difference from torch's own layer",
}


STUDY = Study(
    name="acceptance",
    question="Is this encoder right?",
    text=__doc__ or "",
    variables=("encoder", "model"),
    budgets={"quick": Budget("ten seconds", SETTINGS)},
    metrics=METRICS,
)


def main(words: list[str] | None = None) -> None:
    """The command."""
    from studies.cli.acceptance import application

    application(STUDY)(words, prog_name=STUDY.program)


if __name__ == "__main__":
    main()
