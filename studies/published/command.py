"""From the words that were typed to the study of a published table and the words for it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from registry.errors import ConfigError, Problem, UnknownNameError
from studies.experiment.study import Study
from studies.published.study import study_of

if TYPE_CHECKING:
    from rich.console import Console

    from studies.answers.answer import ArmResult
    from studies.experiment.plan import Plan
    from studies.experiment.study import Show

OURS = ("--table", "--rows", "--format")
FORMATS = ("table", "markdown")


def typed(words: Sequence[str]) -> tuple[Study, list[str]]:
    """The study of a table, as it is to be shown, and what is left to say about its runs.

    Raises:
        ConfigError: If no table is named, or an option has no value.
        UnknownNameError: If there is no such table, row or format.
    """
    options, rest = split(words)
    name, form = options.get("--table"), options.get("--format", "table")
    if name is None:
        raise ConfigError([Problem("--table", "name a table, such as --table ruoss_2023")])
    if form not in FORMATS:
        raise UnknownNameError("format", form, list(FORMATS))
    rows = options.get("--rows")
    study = study_of(name, rows and [row.strip() for row in rows.split(",")])
    return replace(study, show=_shower(form), notes=_notes), rest


def _notes(plan: "Plan") -> Sequence[str]:
    """In what this call differs from its source, and what of that is not verified."""
    from studies.published.differing import told
    from studies.published.table import load

    table = load(plan.study.name)
    lines = [f"Different from the source, {table.source}:"]
    lines += [f"- {one}" for one in told(table, plan)]
    unverified = [claim.about for claim in table.claims if not claim.verified]
    if not table.verified:
        lines.append(f"† not verified at its source: {table.note}")
    elif unverified:
        lines.append(f"† not verified at its source: {'; '.join(unverified)}")
    return lines


def _shower(form: str) -> "Show":
    def show(console: "Console", plan: "Plan", gathered: "list[ArmResult]") -> None:
        # Imported here, so that --help stays fast.
        from studies.published.printing import write

        write(console, plan, gathered, form)

    return show


def split(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The options that are about the table, and the other words in their order.

    >>> split(["--table", "xiong_2020", "--seeds", "3", "--format=markdown"])
    ({'--table': 'xiong_2020', '--format': 'markdown'}, ['--seeds', '3'])

    Raises:
        ConfigError: If an option has no value.
    """
    options: dict[str, str] = {}
    rest: list[str] = []
    left = iter(words)
    for word in left:
        option, equals, value = word.partition("=")
        if option not in OURS:
            rest.append(word)
            continue
        given = value if equals else next(left, None)
        if not given:
            raise ConfigError([Problem(option, f"{option} needs a value")])
        options[option] = given
    return options, rest
