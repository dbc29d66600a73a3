"""Commands whose words name the study: its file, recipes, or a published table.

What they do not know themselves is handed to the command of that study.
"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from studies.cli.command import command, errors, fail
from studies.cli.options import THEN_OF_STUDY, help_text, new_app
from studies.exit_codes import BAD_INPUT, DONE, WORK_FAILED

if TYPE_CHECKING:
    from studies.analysis.verdicts import Verdict
    from studies.experiment.study import Study

RUN = """Run a study of your own, which one YAML file describes.

    python -m studies.run my_study.yaml --describe
    python -m studies.run my_study.yaml --budget smoke

All options of a study are there; `python -m studies.run my_study.yaml --help` lists them.
`examples/my_study.yaml` is a whole study to start from.
"""

RECIPES = """Put to the test what practitioners say about encoders, one small study for each claim.

    python -m studies.recipes --list
    python -m studies.recipes NAME [options of a study]
    python -m studies.recipes NAME,NAME … or all

Every recipe takes all options of a study; `python -m studies.recipes NAME --help` lists them. With
several, `--report DIR` writes each report into a folder of its own in there.
"""

PUBLISHED = """Results as their papers print them, beside ours.

    python -m studies.published                                 lists the tables
    python -m studies.published --table xiong_2020              runs our arms of one and compares
    python -m studies.published --table ruoss_2023 --rows even_pairs,bucket_sort --plan

All options of a study are there (`--table NAME --help`). Finished runs are never repeated, so the
same words print the comparison again.
"""

run_app, recipes_app, published_app = new_app(), new_app(), new_app()


@run_app.command(help=help_text(RUN), context_settings=THEN_OF_STUDY)
def run(
    words: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="A study in YAML, then its options."),
    ],
) -> None:
    with errors():
        from studies.experiment.study_file import read_study

        study = read_study(Path(words[0]))
        refuse_our_name(study)
    command(study)(words[1:])


def is_module(name: str) -> bool:
    """Return whether a study is one of our modules, or an axis of one."""
    module = f"studies.{name.partition('.')[0]}"
    if not name.partition(".")[0].isidentifier() or importlib.util.find_spec(module) is None:
        return False
    return hasattr(importlib.import_module(module), "STUDY")


def refuse_our_name(study: "Study") -> None:
    """Refuse a user's study that is named as one of ours: their runs would be one study.

    Raises:
        ConfigError: If it is.
    """
    from registry.errors import ConfigError, Problem
    from studies import published
    from studies.recipes import RECIPES

    name, file = study.name, study.file
    ours = Path(__file__).parents[1]
    if file is None or file.resolve().is_relative_to(ours):
        return
    if is_module(name) or name in RECIPES.names() or name in published.names():
        rule = f"{name!r} is the name of a study that comes with the sandbox; take another"
        raise ConfigError([Problem("name", rule, name, file=str(file))])


@recipes_app.command(help=help_text(RECIPES), context_settings=THEN_OF_STUDY)
def recipes(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Recipes, or all; then their options."),
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="List the claims; nothing is run.")
    ] = False,
) -> None:
    if listed or not words:
        _list_recipes()
        return
    with errors():
        from studies.recipes import RECIPES

        names, *rest = words
        chosen = RECIPES.names() if names == "all" else names.split(",")
        studies = [RECIPES.read(name.strip()) for name in chosen]
    if len(studies) == 1 or "--help" in rest:
        command(studies[0])(rest)
    raise typer.Exit(_run_several(studies, rest))


def _run_several(studies: "Sequence[Study]", words: Sequence[str]) -> int:
    """Run one recipe after another, then print all verdicts; return the worst exit code.

    What is wrong with the words is told once, and an interruption ends them all.
    """
    worst, told = DONE, list["tuple[str, Verdict]"]()
    for study in studies:
        print(f"\n{study.program}\n{study.question}\n", flush=True)
        heard: list[Verdict] = []
        try:
            command(study, heard.extend)(with_own_report(words, study.name))
        except SystemExit as end:
            code = int(end.code or DONE)
            if code not in (DONE, WORK_FAILED):
                return code
            worst = max(worst, code)
        told += [(study.name, verdict) for verdict in heard]
    _print_verdicts(told)
    return worst


def with_own_report(words: Sequence[str], name: str) -> list[str]:
    """The words with the folder of reports made that of one recipe."""
    own = list(words)
    for place, word in enumerate(words):
        option, _, value = word.partition("=")
        if option == "--report" and value:
            own[place] = f"--report={Path(value) / name}"
        elif option == "--report" and place + 1 < len(words):
            own[place + 1] = str(Path(words[place + 1]) / name)
    return own


def _print_verdicts(told: "Sequence[tuple[str, Verdict]]") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    shown = ""
    for recipe, verdict in told:
        effect = "" if verdict.effect is None else f"{verdict.effect:+.3g}"
        name = "" if recipe == shown else recipe
        table.add_row(name, verdict.hypothesis.name, verdict.status, effect)
        shown = recipe
    if told:
        print("\nVerdicts, with the effect in units of the metric")
        Console(width=None if sys.stdout.isatty() else 160).print(table, highlight=False)


def _list_recipes() -> None:
    from studies.recipes import RECIPES, claim_of

    for name in RECIPES.names():
        claim = claim_of(name)
        print(f"{name}\n  {claim.sentence}\n  {claim.source}")
        print(f"  varies {claim.variable}; quick: {claim.cost}")
    print("\npython -m studies.recipes NAME runs one, `all` every one.")


@published_app.command(
    help=help_text(PUBLISHED),
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
)
def published(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="OPTION", help="All options of a study.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="The table to run and compare.")] = None,
    rows: Annotated[str | None, typer.Option(help="Its rows to run, joined by commas.")] = None,
    form: Annotated[
        Literal["table", "markdown"],
        typer.Option("--format", help="How the comparison is printed; markdown is for documents."),
    ] = "table",
) -> None:
    if table is not None:
        with errors():
            from studies.published.study import study_of

            study = study_of(table, rows and [row.strip() for row in rows.split(",")], form)
        command(study)(words or [])
    elif words and {"--help", "-h"} & set(words):
        parser = typer.main.get_command(published_app)
        print(parser.get_help(parser.make_context("python -m studies.published", [])))
    elif words or rows is not None:
        fail("--table NAME is required; without any options the tables are listed", BAD_INPUT)
    else:
        _list_tables()


def _list_tables() -> None:
    from studies.published.table import load, names

    print("Published tables (python -m studies.published --table NAME --plan)")
    for name in names():
        table = load(name)
        read = "" if table.verified else " † not verified at its source"
        print(f"  {name:20}{table.title}\n{'':22}{table.source}{read}")
