"""A report as one HTML page that needs nothing else, and as Markdown."""

import io
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

from store.metrics import metric_of
from studies.analysis.phrases import decimals
from studies.analysis.printing import SHOWN, caption
from studies.analysis.results import Arm, Task
from studies.analysis.sentences import (
    arm_sentence,
    claims,
    contrast_name,
    counts,
    is_time,
    listed,
    reaches,
    sentence,
)
from studies.report.figures import figures
from studies.report.findings import Findings, bibtex
from studies.report.numbers import Numbers, plain
from studies.report.style import as_written, style

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

    from studies.analysis.verdicts import Verdict


def html_page(findings: Findings, drawn: Mapping[str, str] | None = None) -> tuple[str, Numbers]:
    """The page, and every number on it; `drawn` are its pictures where these are at hand."""
    from markupsafe import Markup

    numbers, pictures = Numbers(), svgs(findings) if drawn is None else drawn

    def figure(name: str, caption: str) -> Markup:
        if name not in pictures:
            return Markup("")
        picture = Markup(pictures[name])  # our own drawing, whose texts matplotlib has escaped
        label = Markup('<figure role="group" id="{}">{}<figcaption>{}</figcaption></figure>')
        return label.format(f"figure-{name}", picture, caption)

    def num(value: float | None, key: str, digits: int | None = 2) -> Markup:
        return Markup(numbers.show(value, key, digits))

    def quote(text: str, key: str) -> Markup:
        return Markup(numbers.quote(text, key))

    page = environment(autoescape=True).get_template("page.html.j2")
    css = resources.files("studies.report").joinpath("page.css").read_text(encoding="utf-8")
    words = {"figure": figure, "num": num, "quote": quote, "css": Markup(css)}
    return page.render(_words(findings) | words), numbers


def markdown_page(findings: Findings, pictures: Mapping[str, str]) -> str:
    """The same as Markdown; `pictures` are the files of the figures, by name."""
    page = environment(autoescape=False).get_template("page.md.j2")

    def figure(name: str, caption: str) -> Said:
        return Said(f"![{escaped(caption)}]({pictures[name]})" if name in pictures else "")

    def num(value: float | None, key: str, digits: int | None = 2) -> str:
        return plain(value, digits)

    text = page.render(_words(findings) | {"figure": figure, "num": num})
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def metrics(task: Task) -> list[tuple[str, str, int | None]]:
    """Return the tables of a task: metric, title and digits after the point."""
    if not task.has_skill:
        return [(metric, task.title_of(metric), None) for metric in task.metrics]
    titles = [metric_of(metric).title for metric in SHOWN]
    titles[0] += "; mean ± half of the 95 % t-interval"
    return [(m, title[:1].upper() + title[1:], 2) for m, title in zip(SHOWN, titles, strict=True)]


def _words(findings: Findings) -> dict[str, Any]:
    tasks = findings.tasks
    return {
        "f": findings,
        "metrics": metrics,
        "answer": [claims(findings.verdicts), reaches(tasks, findings.lines)],
        "counts": counts(tasks),
        "names": contrast_name,
        "overall_caption": caption(findings.overall) if findings.overall else "",
        "captions": captions,
        "digits_of": lambda verdict: decimals(verdict.hypothesis.smallest_effect),
        "said": sentence,
        "arm_said": arm_sentence,
        "arm_names": list(dict.fromkeys(arm.name for task in tasks for arm in task.arms)),
        "lost": [failure for task in tasks for arm in task.arms for failure in _lost(task, arm)],
        "methods": methods(findings),
        "bibtex": bibtex(findings.sources),
    }


def _lost(task: Task, arm: Arm) -> Iterator[tuple[str, str, int | None, str, str]]:
    """The failures of an arm: task, arm, seed (None: in tuning), status and reason."""
    if arm.choice is not None and arm.choice.setting is None:
        yield task.label, arm.name, None, "no result", arm.reason
    for number, seed in arm.lost.items():
        yield task.label, arm.name, number, seed.status, seed.reason


def captions(task: Task) -> str:
    """Return the caption of the figure of all metrics."""
    if len(task.lengths) == 1:
        return f"Every metric at length {task.lengths[0]}. Dots: every seed; lines: their mean."
    return "Every metric against length. Thin: every seed; thick: their mean."


def environment(autoescape: bool) -> "Environment":
    """Return the templates of reports, read as HTML or as Markdown."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("studies.report", "")
    environment = Environment(
        loader=loader,
        autoescape=autoescape,
        finalize=None if autoescape else escaped,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["as_it_is"] = Said
    environment.filters["upper_first"] = lambda text: text[:1].upper() + text[1:]
    return environment


def svgs(findings: Findings) -> dict[str, str]:
    """Draw every figure as the text of an `svg` element, with ids that no other figure has."""
    with style():
        drawn = {name: as_written(draw()) for name, draw in figures(findings).items()}
        return {name: _svg(figure, name) for name, figure in drawn.items()}


def _svg(figure: "Figure", name: str) -> str:
    """Return the element alone, without the head of a file and without fixed sizes."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    svg = file.getvalue()
    element = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    for _ in ("width", "height"):
        element = re.sub(r'(<svg[^>]*?) (?:width|height)="[^"]*"', r"\1", element)
    for one in sorted(re.findall(r'\bid="([^"]+)"', element), key=len, reverse=True):
        element = re.sub(
            rf'(\bid="|href="#|url\(#){re.escape(one)}(?=["\)])', rf"\g<1>{name}-{one}", element
        )
    return element


SIGNS = re.compile(
    r"""[\\`*|~$]            # code, emphasis, cells of a table, formulas
    | <(?=[A-Za-z/!?])        # HTML
    | (?<!\w)_ | _(?!\w)        # emphasis too, but inside of a word
    | \](?=[(\[])              # links
    | &(?=\#?\w+;)             # entities of HTML
    """,
    re.VERBOSE,
)


class Said(str):
    """Markdown that is meant as such."""


def escaped(value: object) -> str:
    """A value on one line, with a backslash before each sign that Markdown would read.

    >>> print(escaped("t5_bias < a|b, _c_ and $x$"))
    t5_bias \\< a\\|b, \\_c\\_ and \\$x\\$
    """
    if isinstance(value, Said):
        return value
    return SIGNS.sub(r"\\\g<0>", " ".join(str(value).split("\n")))


def methods(findings: Findings) -> str:
    """Say how the study was done, in the words of a methods section."""
    trained = [task for task in findings.tasks if task.task]
    arms = [arm for task in trained for arm in task.arms]
    tuned = any(arm.tuning for task in findings.tasks for arm in task.arms)
    sentences = [_training(findings, trained), _tuning(findings, tuned)] if trained else []
    if not trained:
        labels = listed([task.label for task in findings.tasks])
        sentences = [f"Nothing was trained: we measured every arm on {labels}."]
    sentences += [
        _replicates(findings, tuned),
        "Intervals of means are Student's over seeds; shares of seeds have Wilson's.",
    ]
    if findings.verdicts:
        sentences.append(_contrasts(findings.verdicts))
    if any(arm.count("diverged") for arm in arms):
        sentences.append("A seed that diverged counts as one that learned nothing.")
    if any(arm.count("failed") for arm in arms):
        sentences.append(
            "A run that failed is in no mean; a verdict is given only where it is the same "
            "whatever that run would have scored."
        )
    return " ".join([*sentences, "No seed was dropped."])


def _training(findings: Findings, trained: list[Task]) -> str:
    known = findings.hyperparameters
    tasks = [
        f"{task.task} ({task.steps} steps on lengths {task.trained[0]} to {task.trained[1]})"
        for task in trained
    ]
    return (
        f"We trained every arm from scratch on {listed(tasks)}, with AdamW, "
        f"batches of {known.get('training.batch_size')} sequences and the "
        f"{known.get('training.schedule')} schedule with {known.get('training.warmup_steps')} "
        "warm-up steps."
    )


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
    run = f"It was run on {counted}"
    if tuned:
        run = f"The chosen setting was then run on {counted} fresh"
    alike = "every arm saw the same data and the same test sets in each replicate"
    return f"{run} {noun} an arm; {alike}."


def _contrasts(verdicts: "list[Verdict]") -> str:
    """Say how the claims were tested: each kind that there is, and the families they form."""
    claims = [verdict.hypothesis for verdict in verdicts]
    by_times = [is_time(one) and one.direction != "same" for one in claims if one.than is None]
    tests = {
        "a studentized two-sample permutation test over seeds": not all(by_times),
        "a permutation log-rank test where they are about times": any(by_times),
        "permuted residuals of the additive model (Freedman & Lane) where they are interactions": (
            len(by_times) < len(claims)
        ),
    }
    used = listed([name for name, is_used in tests.items() if is_used])
    fixed = any(not verdict.exploratory for verdict in verdicts)
    families = ["the family fixed before the first confirming run"] if fixed else []
    if any(verdict.exploratory for verdict in verdicts):
        later = "those that came later" if fixed else "their family, none being fixed beforehand"
        families.append(f"{later} (exploratory)")
    return (
        f"Contrasts are tested by {used}, with Holm's correction over {listed(families)}, and "
        "judged by simultaneous intervals against the smallest effect of interest."
    )


SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
"""Signs that LaTeX would read, and how they are written."""


def latex_table(findings: Findings) -> str:
    r"""Return the hyperparameters as a LaTeX table; needs \usepackage{booktabs}."""
    rows = "\n".join(
        " & ".join("".join(SPECIAL.get(sign, sign) for sign in str(text)) for text in row) + r" \\"
        for row in findings.hyperparameters.items()
    )
    head = "\\begin{tabular}{ll}\n\\toprule\nSetting & Value \\\\\n\\midrule"
    return f"{head}\n{rows}\n\\bottomrule\n\\end{{tabular}}\n"
