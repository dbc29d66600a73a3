"""A report as one HTML page that needs nothing else, and as Markdown."""

import io
import re
from collections.abc import Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

from store.metrics import metric_of
from studies.analysis.phrases import decimals
from studies.analysis.printing import caption
from studies.analysis.results import Task
from studies.analysis.sentences import answer, arm_sentence, contrast_name, counts, sentence
from studies.report.figures import figures
from studies.report.findings import Findings
from studies.report.methods import methods
from studies.report.numbers import Numbers, plain
from studies.report.provenance import bibtex
from studies.report.style import as_written, style

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

    from studies.analysis.verdicts import Verdict


SHOWN = ("skill", "accuracy", "exact")
"""The metrics of a trained task that have a table."""


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
    style_sheet = Markup(_text("page.css"))
    return page.render(
        _words(findings) | {"figure": figure, "num": num, "quote": quote, "css": style_sheet}
    ), numbers


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
    """What a task's tables show: metric, title and digits after the point."""
    if task.has_skill:
        return [(metric, _title(metric), 2) for metric in SHOWN]
    return [(metric, task.title_of(metric), None) for metric in task.metrics]


def _title(metric: str) -> str:
    title = metric_of(metric).title
    tail = "; mean ± half of the 95 % t-interval" if metric == SHOWN[0] else ""
    return title[:1].upper() + title[1:] + tail


def _digits(verdict: "Verdict") -> int:
    """Digits after the point of an effect, as many as its sentence has."""
    return decimals(verdict.hypothesis.smallest_effect)


def _words(findings: Findings) -> dict[str, Any]:
    tasks = findings.tasks
    return {
        "f": findings,
        "metrics": metrics,
        "answer": answer(tasks, findings.verdicts, findings.lines),
        "counts": counts(tasks),
        "names": contrast_name,
        "overall_caption": caption(findings.overall) if findings.overall else "",
        "captions": captions,
        "digits_of": _digits,
        "said": sentence,
        "arm_said": arm_sentence,
        "arm_names": list(dict.fromkeys(arm.name for task in tasks for arm in task.arms)),
        "lost": [
            (task.label, arm.name, number, seed)
            for task in tasks
            for arm in task.arms
            for number, seed in arm.lost.items()
        ],
        "methods": methods(findings),
        "bibtex": bibtex(findings.sources),
    }


def captions(task: Task) -> str:
    """What the figure of all metrics shows."""
    if len(task.lengths) == 1:
        return f"Every metric at length {task.lengths[0]}. Dots: every seed; lines: their mean."
    return "Every metric against length. Thin: every seed; thick: their mean."


def environment(autoescape: bool) -> "Environment":
    """Where the templates of reports lie, and how they are read: as HTML, or as Markdown."""
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


def _text(name: str) -> str:
    return resources.files("studies.report").joinpath(name).read_text(encoding="utf-8")


def svgs(findings: Findings) -> dict[str, str]:
    """Every figure as the text of an `svg` element, with ids that no other figure has."""
    with style():
        drawn = {name: as_written(draw()) for name, draw in figures(findings).items()}
        return {name: _inline(_svg(figure), name) for name, figure in drawn.items()}


def _svg(figure: "Figure") -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return file.getvalue()


def _inline(svg: str, name: str) -> str:
    """The element alone, without the head of a file and without fixed sizes."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r'(<svg[^>]*?) (?:width|height)="[^"]*"', r"\1", element)
    element = re.sub(r'(<svg[^>]*?) (?:width|height)="[^"]*"', r"\1", element)
    ids = re.findall(r'\bid="([^"]+)"', element)
    for one in sorted(ids, key=len, reverse=True):
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
