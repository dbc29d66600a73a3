"""Do all checks on the model of a run."""

from collections.abc import Iterator

from studies.acceptance_checks import KEY, learning, numerics, parity, structure
from studies.acceptance_checks.check import Check, Finding, Subject
from studies.training.outcome import Measured, Outcome, Work

LAYERS = (structure.LAYER, numerics.LAYER, learning.LAYER, parity.LAYER)
CHECKS: tuple[Check, ...] = tuple(check for layer in LAYERS for check in layer.checks)
VALUES = {"passed": 1.0, "failed": 0.0, "not applicable": None}


def accept(
    work: Work,
    overfit_examples: int = 100,
    overfit_steps: int = 400,
    overfit_rate: float = 1e-3,
) -> Outcome:
    """Check one model in four layers: structure, numerics, learning, parity.

    Each check is a metric, 1 where it passed, 0 where it failed, none where it cannot be asked;
    `passed` and `failed` count them. Beside them stand the numbers that the checks saw:
    `first_loss`, `loss_before`, `loss_after`, `accuracy`, `overfit_accuracy`, `overfit_steps`,
    `parity_error`. The words are in the provenance of the run.

    Args:
        work: The run.
        overfit_examples: How many sequences are to be learned by heart.
        overfit_steps: Within how many steps at most.
        overfit_rate: At which learning rate.
    """
    subject = Subject(work, overfit_examples, overfit_steps, overfit_rate)
    findings = [_found(check, subject) for check in CHECKS]
    scores = [measured for one in findings for measured in _measured(one, subject.length)]
    for status in ("passed", "failed"):
        count = sum(one.status == status for one in findings)
        scores.append(Measured("test", subject.length, status, len(findings), float(count)))
    sizes = [one.numel() for one in subject.model.parameters()]
    return Outcome(
        scores=scores,
        parameters=sum(sizes),
        provenance={KEY: [one.plain() for one in findings], "lines": [*map(_line, findings)]},
    )


def _found(check: Check, subject: Subject) -> Finding:
    subject.work.between_batches()
    return check.try_on(subject)


def _line(finding: Finding) -> dict[str, str]:
    """What was asked and found, for a report; what to suspect stands behind what failed."""
    suspects = (f"suspect: {one}" for one in finding.suspects)
    return {
        "asked": f"{finding.layer}: {finding.check.replace('_', ' ')}",
        "outcome": finding.status,
        "detail": "; ".join([finding.detail, *suspects]),
    }


def _measured(finding: Finding, length: int) -> Iterator[Measured]:
    value = VALUES[finding.status]
    n = 0 if value is None else 1
    yield Measured("test", length, finding.check, n, value, None if value is None else int(value))
    for metric, number in finding.numbers.items():
        yield Measured("test", length, metric, 1, number)
