"""A report as one HTML page that needs nothing else, and as Markdown."""

import io
import re
from collections.abc import Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

from studies.report import wording
from studies.report.figures import figures
from studies.report.findings import Findings, Panel
from studies.report.numbers import Numbers, plain
from studies.report.provenance import bibtex
from studies.report.style import as_written, style
from studies.report.wording import methods

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

    from studies.statistics import Verdict


METRICS = {
    "skill": "Skill (0 = best blind guess, 1 = all right); mean ± half of the 95 % t-interval",
    "accuracy": "Accuracy (share of right answers)",
    "exact": "Exact match (share of sequences with every answer right)",
}


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


def metrics(panel: Panel) -> list[tuple[str, str, int | None]]:
    """What a panel's tables show: metric, title and digits after the point."""
    if panel.has_skill:
        return [(metric, title, 2) for metric, title in METRICS.items()]
    return [(metric, panel.titles.get(metric, metric), None) for metric in panel.metrics]


def _digits(verdict: "Verdict") -> int:
    """Digits after the point of an effect, as many as its sentence has."""
    from studies.analysis.phrases import decimals

    return decimals(verdict.hypothesis.smallest_effect)


def _words(findings: Findings) -> dict[str, Any]:
    from studies.analysis.printing import caption
    from studies.statistics import sentence

    return {
        "f": findings,
        "metrics": metrics,
        "answer": wording.answer(findings),
        "counts": wording.counts(findings),
        "names": wording.contrast_name,
        "overall_caption": caption(findings.overall) if findings.overall else "",
        "digits_of": _digits,
        "said": sentence,
        "arm_names": list(dict.fromkeys(arm.name for p in findings.panels for arm in p.arms)),
        "lost": [
            (p.label, arm.name, s) for p in findings.panels for arm in p.arms for s in arm.lost
        ],
        "methods": methods(findings),
        "bibtex": bibtex(findings),
    }


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
