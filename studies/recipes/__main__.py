"""Put to the test what practitioners say about encoders, one small study for each claim.

    python -m studies.recipes --list
    python -m studies.recipes NAME [options of a study]
    python -m studies.recipes NAME,NAME … or all

Every recipe takes all options of a study; `python -m studies.recipes NAME --help` lists them. With
several, `--report DIR` writes each report into a folder of its own in there.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from studies.cli.command import command, errors
from studies.exit_codes import DONE, WORK_FAILED

if TYPE_CHECKING:
    from studies.experiment.study import Study
    from studies.statistics.verdict import Verdict

PROGRAM = "python -m studies.recipes"


def main() -> None:
    """Take the recipes off the command line and hand the rest to the command of each."""
    typed = sys.argv[1:]
    if not typed or typed[0].startswith("-"):
        _without_a_recipe(typed or ["--list"])
        return
    try:
        with errors():
            from studies.recipes.recipe import RECIPES

            chosen = RECIPES.names() if typed[0] == "all" else typed[0].split(",")
            studies = [RECIPES.read(name.strip()) for name in chosen]
    except typer.Exit as end:
        sys.exit(end.exit_code)
    if len(studies) == 1 or "--help" in typed:
        command(studies[0])(typed[1:])
    sys.exit(_several(studies, typed[1:]))


def _several(studies: "Sequence[Study]", words: Sequence[str]) -> int:
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


def _without_a_recipe(words: Sequence[str]) -> None:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)

    def recipes(
        listed: Annotated[
            bool, typer.Option("--list", help="List the claims; nothing is run.")
        ] = False,
    ) -> None:
        if listed:
            _print_list()

    recipes.__doc__ = __doc__
    app.command()(recipes)
    app(words, prog_name=PROGRAM)


def _print_list() -> None:
    from studies.recipes.recipe import RECIPES, claim_of

    for name in RECIPES.names():
        claim = claim_of(name)
        print(f"{name}\n  {claim.sentence}\n  {claim.source}")
        print(f"  varies {claim.variable}; quick: {claim.cost}")
    print(f"\n{PROGRAM} NAME runs one, `all` every one.")


if __name__ == "__main__":
    main()
