"""The paragraph and the table that a paper needs to say how the numbers came about."""

from typing import TYPE_CHECKING

from studies.analysis.results import Task
from studies.analysis.sentences import is_time, listed
from studies.report.findings import Findings

if TYPE_CHECKING:
    from studies.analysis.verdicts import Verdict


def methods(findings: Findings) -> str:
    """How the study was done, in the words of a methods section."""
    trained = [task for task in findings.tasks if task.task]
    tuned = any(arm.tuning for task in findings.tasks for arm in task.arms)
    told = [
        _training(findings, trained) if trained else _measuring(findings),
        _replicates(findings, tuned),
        "Intervals of means are Student's over seeds; shares of seeds have Wilson's.",
    ]
    if trained:
        told.insert(1, _tuning(findings, tuned))
    if findings.verdicts:
        told.append(_contrasts(findings.verdicts))
    return " ".join([*told, *_counted_as(trained), "No seed was dropped."])


def _contrasts(verdicts: "list[Verdict]") -> str:
    """How the claims were tested: each kind that there is, and the families they form."""

    claims = [verdict.hypothesis for verdict in verdicts]
    whole = [claim for claim in claims if claim.than is None]
    tests = {
        "a studentized two-sample permutation test over seeds": [
            claim for claim in whole if not is_time(claim) or claim.direction == "same"
        ],
        "a permutation log-rank test where they are about times": [
            claim for claim in whole if is_time(claim) and claim.direction != "same"
        ],
        "permuted residuals of the additive model (Freedman & Lane) where they are interactions": [
            claim for claim in claims if claim.than is not None
        ],
    }
    used = listed([name for name, tested in tests.items() if tested])
    fixed = any(not verdict.exploratory for verdict in verdicts)
    families = ["the family fixed before the first confirming run"] if fixed else []
    if any(verdict.exploratory for verdict in verdicts):
        later = "those that came later" if fixed else "their family, none being fixed beforehand"
        families.append(f"{later} (exploratory)")
    return (
        f"Contrasts are tested by {used}, with Holm's correction over {listed(families)}, and "
        "judged by simultaneous intervals against the smallest effect of interest."
    )


def _training(findings: Findings, trained: list[Task]) -> str:
    known = findings.hyperparameters
    tasks = listed(
        [
            f"{task.task} ({task.steps} steps on lengths {task.trained[0]} to {task.trained[1]})"
            for task in trained
        ]
    )
    return (
        f"We trained every arm from scratch on {tasks}, with AdamW, "
        f"batches of {known.get('training.batch_size')} sequences and the "
        f"{known.get('training.schedule')} schedule with {known.get('training.warmup_steps')} "
        "warm-up steps."
    )


def _measuring(findings: Findings) -> str:
    labels = listed([task.label for task in findings.tasks])
    return f"Nothing was trained: we measured every arm on {labels}."


def _tuning(findings: Findings, tuned: bool) -> str:
    if not tuned:
        return "Every arm was trained with the same settings; none was tuned."
    return (
        "Each arm tried the same settings on seeds kept apart, and one was chosen: "
        f"{findings.selection} (nll: validation cross-entropy); test lengths had no say."
    )


def _replicates(findings: Findings, tuned: bool) -> str:
    seeds = sorted({len(arm.seeds) for task in findings.tasks for arm in task.arms})
    counted = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    noun = "seed" if seeds == [1] else "seeds"
    run = (
        f"The chosen setting was then run on {counted} fresh {noun} an arm"
        if tuned
        else (f"It was run on {counted} {noun} an arm")
    )
    return f"{run}; every arm saw the same data and the same test sets in each replicate."


def _counted_as(trained: list[Task]) -> list[str]:
    """What seeds without numbers of their own were counted as."""
    arms = [arm for task in trained for arm in task.arms]
    told: list[str] = []
    if any(arm.count("diverged") for arm in arms):
        told.append("A seed that diverged counts as one that learned nothing.")
    if any(arm.count("failed") for arm in arms):
        told.append(
            "A run that failed is in no mean; a verdict is given only where it is the same "
            "whatever that run would have scored."
        )
    return told


def latex_table(findings: Findings) -> str:
    r"""The hyperparameters as a LaTeX table; needs \usepackage{booktabs}."""
    rows = "\n".join(
        rf"{_escaped(key)} & {_escaped(str(value))} \\"
        for key, value in findings.hyperparameters.items()
    )
    head = "\\begin{tabular}{ll}\n\\toprule\nSetting & Value \\\\\n\\midrule"
    return f"{head}\n{rows}\n\\bottomrule\n\\end{{tabular}}\n"


SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def _escaped(text: str) -> str:
    return "".join(SPECIAL.get(sign, sign) for sign in text)
