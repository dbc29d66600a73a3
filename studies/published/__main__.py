"""Results as their papers print them, beside ours.

    python -m studies.published                                 lists the tables
    python -m studies.published --table xiong_2020              runs our arms of one and compares
    python -m studies.published --table ruoss_2023 --rows even_pairs,bucket_sort --plan

`--rows` names the rows to run, `--format markdown` prints for a document; all options of a study
are there (`--table NAME --help`). Finished runs are never repeated, so the same words print the
comparison again.
"""

import sys
from collections.abc import Sequence

import typer

from studies.cli.command import command, errors, fail
from studies.exit_codes import BAD_INPUT

HELP = ("--help", "-h")


def main(words: Sequence[str] | None = None) -> None:
    """List the tables, or hand what was typed to the study of one."""
    given = list(sys.argv[1:] if words is None else words)
    named = any(word.partition("=")[0] == "--table" for word in given)
    try:
        with errors():
            if not named and any(word in HELP for word in given):
                print((__doc__ or "").strip())
                return
            if not given:
                listing()
                return
            if not named:
                fail("name a table first: --table NAME; without words all are listed", BAD_INPUT)
            from studies.published.command import typed

            study, rest = typed(given)
    except typer.Exit as end:
        sys.exit(end.exit_code)
    command(study)(rest)


def listing() -> None:
    """Print each table with its place, and whether it was read there."""
    from studies.published.table import load, names

    print("Published tables (python -m studies.published --table NAME --plan)")
    for name in names():
        table = load(name)
        read = "" if table.verified else " † not verified at its source"
        print(f"  {name:20}{table.title}\n{'':22}{table.source}{read}")


if __name__ == "__main__":
    sys.exit(main())
