"""Run a study of your own, which one YAML file describes.

    python -m studies.run my_study.yaml --describe
    python -m studies.run my_study.yaml --budget smoke

All options of a study are there; `python -m studies.run my_study.yaml --help` lists them.
`examples/my_study.yaml` is a whole study to start from.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from studies.cli.command import command, errors

PROGRAM = "python -m studies.run"


def main() -> None:
    """Take the file off the command line and hand the rest to the command of its study."""
    typed = sys.argv[1:]
    if not typed or typed[0].startswith("-"):
        _without_a_file()
        return
    try:
        with errors():
            from studies.cli.recall import refuse_our_name
            from studies.experiment.study_file import read_study

            study = read_study(Path(typed[0]))
            refuse_our_name(study)
    except typer.Exit as end:
        sys.exit(end.exit_code)
    command(study)(typed[1:])


def _without_a_file() -> None:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)

    def run(file: Annotated[Path, typer.Argument(help="A YAML file that describes a study.")]):
        raise AssertionError("a first word that is no option is the file")

    run.__doc__ = __doc__
    app.command()(run)
    app(prog_name=PROGRAM)


if __name__ == "__main__":
    main()
