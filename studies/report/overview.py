"""One page over many studies: each question, what became of its claims, a figure, the command."""

import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from registry.errors import ConfigError, Problem
from store.files import writing
from store.results import Results
from studies.analysis.gather import StoredRuns
from studies.analysis.sentences import ORDER, claims, counts, sentence
from studies.experiment.plan import latest_plan
from studies.report.figures import effects, figures
from studies.report.findings import Findings, findings_of
from studies.report.numbers import plain
from studies.report.page import environment
from studies.report.style import as_written, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from studies.analysis.verdicts import Verdict

CAPTION = "Effects in units of the smallest effect of interest, with intervals"
FIRST = "The first figure of the report"
NO_MEANING = ("smoke",)
"""Budgets that only show that everything works."""

WITHOUT_EFFECT = ("--storage", "--workers", "--threads", "--report")
"""Options of a call on which no number depends."""


@dataclass(frozen=True)
class Entry:
    """The findings of one study; its latest call has this budget and expects so many final runs."""

    findings: Findings
    budget: str
    expected: int

    @property
    def anchor(self) -> str:
        """The anchor of the study on the page, and the name of its figure."""
        return re.sub(r"\W+", "_", self.findings.study)

    @property
    def command(self) -> str:
        """The command that makes the same numbers, wherever they are stored."""
        kept: list[str] = []
        words = iter(shlex.split(self.findings.command))
        for word in words:
            if word in WITHOUT_EFFECT:
                next(words, None)
            elif word.partition("=")[0] not in WITHOUT_EFFECT:
                kept.append(word)
        return shlex.join(kept)

    @property
    def primary(self) -> list["Verdict"]:
        """Verdicts on claims that were fixed before their runs."""
        return [one for one in self.findings.verdicts if not one.exploratory]

    @property
    def explored(self) -> list["Verdict"]:
        """All others that could be judged."""
        return [
            one for one in self.findings.verdicts if one.exploratory and one.status != "not tested"
        ]

    @property
    def unasked(self) -> int:
        """The number of the others that could not be judged."""
        return len(self.findings.verdicts) - len(self.primary) - len(self.explored)

    @property
    def tally(self) -> list[int]:
        """The number of primary claims by status, in the order of `sentences.ORDER`."""
        return [sum(one.status == status for one in self.primary) for status in ORDER]

    @property
    def alone(self) -> list[tuple[str, float]]:
        """The measurements of a study of one arm and one seed, which compares nothing."""
        seeds = [seed for task in self.findings.tasks for seed in task.seeds]
        if len(seeds) != 1 or self.findings.verdicts:
            return []
        (task,) = self.findings.tasks
        own = {metric: value for (_, metric, _), value in seeds[0].places.items()}
        return [(task.title_of(one), own[one]) for one in task.metrics if one in own]

    @property
    def basis(self) -> str:
        """The runs that stand behind it, and what a reader must not take it for."""
        tasks = self.findings.tasks
        there = sum(seed.ended for task in tasks for seed in task.seeds)
        sentences = [f"Study `{self.findings.study}`, budget {self.budget}: {counts(tasks)}."]
        if self.budget in NO_MEANING:
            sentences.append(
                "**This budget only shows that everything works: its numbers mean nothing.**"
            )
        if there < self.expected:
            sentences.append(f"**Unfinished: {there} of {self.expected} runs are done.**")
        sentences += [f"**{note}**" for note in self.findings.notes]
        return " ".join(sentences)


def entries(storages: Iterable[str], wanted: Sequence[str] = ()) -> list[Entry]:
    """Collect the findings of the studies in these databases, in the order of storage.

    Args:
        storages: Addresses of databases.
        wanted: Names of studies; all where none is named.

    Raises:
        ConfigError: If two databases hold one study.
        StoreError: If a database is missing, or holds a study without its plan.
    """
    found: dict[str, tuple[str, Entry]] = {}
    for storage in storages:
        with closing(Results(storage)) as results:
            names = [one for one in results.studies() if not wanted or one in wanted]
            plans = [latest_plan(results, one) for one in names]
            expected = [sum(map(StoredRuns(one, results).expected, one.cells())) for one in plans]
        for plan, runs in zip(plans, expected, strict=True):
            name = plan.study
            if name in found:
                rule = (
                    f"a study has one place on the page; {name} is in {found[name][0]} and in "
                    f"{storage}; leave one of them out"
                )
                raise ConfigError([Problem("--storage", rule)])
            found[name] = storage, Entry(findings_of(plan, storage), plan.budget, runs)
    return [entry for _, entry in found.values()]


def write_overview(
    found: Sequence[Entry], out: Path, command: str, known: Iterable[tuple[str, str]] = ()
) -> Path:
    """Write the page, and its figures into a folder beside it that is named after it.

    Args:
        found: The studies on the page.
        out: The Markdown file.
        command: What makes the page anew.
        known: Studies with their questions; those that found nothing yet are listed last.

    Raises:
        StoreError: If they cannot be written.
    """
    folder = out.with_suffix("")
    pictures: dict[str, tuple[str, str] | None] = {}
    with writing(out), style():
        folder.mkdir(parents=True, exist_ok=True)
        for entry in found:
            drawn = _figure(entry)
            pictures[entry.anchor] = None
            if drawn is not None:
                figure, caption = drawn
                file = folder / f"{entry.anchor}.png"
                as_written(figure).savefig(file, dpi=110, metadata={"Software": None})
                pictures[entry.anchor] = f"{folder.name}/{file.name}", caption
        shown = {entry.findings.study for entry in found}
        text = (
            environment(autoescape=False)
            .get_template("overview.md.j2")
            .render(
                entries=found,
                claims=claims,
                pictures=pictures,
                command=command,
                said=sentence,
                num=plain,
                waiting=[(name, about) for name, about in known if name not in shown],
            )
        )
        out.write_text(re.sub(r"\n{3,}", "\n\n", text).strip() + "\n", encoding="utf-8")
    return out


def _figure(entry: Entry) -> "tuple[Figure, str] | None":
    """The effects of all claims; without any, the first figure of the report, if it compares."""
    if entry.alone:
        return None
    drawn = effects(entry.findings.verdicts)
    if drawn is not None:
        return drawn, CAPTION
    others = figures(entry.findings)
    return next(((draw(), FIRST) for draw in others.values()), None)
