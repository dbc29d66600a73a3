"""The paragraph and the table that a paper needs to say how the numbers came about."""

from studies.report.findings import Findings
from studies.report.wording import listed


def methods(findings: Findings) -> str:
    """How the study was done, in the words of a methods section."""
    known = findings.hyperparameters
    tasks = listed([f"{panel.task} ({panel.steps} steps)" for panel in findings.panels])
    shortest, longest = findings.panels[0].trained
    seeds = sorted({len(arm.seeds) for panel in findings.panels for arm in panel.arms})
    counted = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    tuned = sum(len(arm.tuning) for panel in findings.panels for arm in panel.arms)
    tuning = (
        "Each arm tried the same settings on seeds kept apart, and one was chosen: "
        f"{findings.selection} (nll: validation cross-entropy); test lengths had no say. "
        if tuned
        else "Every arm was trained with the same settings; none was tuned. "
    )
    return (
        f"We trained every arm from scratch on {tasks}, with lengths {shortest} to {longest}, "
        f"AdamW, batches of {known.get('training.batch_size')} sequences and the "
        f"{known.get('training.schedule')} schedule with {known.get('training.warmup_steps')} "
        f"warm-up steps. {tuning}"
        f"The chosen setting was then run on {counted} fresh seeds an arm; every arm saw the same "
        "data and the same test sets in each replicate. Intervals of means are Student's over "
        "seeds; shares of seeds have Wilson's. Contrasts are tested by a studentized two-sample "
        "permutation test over seeds with Holm's correction over the family fixed before the "
        "first confirming run, and judged by simultaneous intervals against the smallest effect "
        "of interest. No seed was dropped."
    )


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
