"""List the studies and the tasks; write and check reports and bundles."""

import ast
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from studies.cli.command import errors, fail
from studies.cli.options import DATABASE, Storage, new_app
from studies.exit_codes import BAD_INPUT, WORK_FAILED

STUDIES = Path(__file__).parents[1]

app = new_app()


@app.command("list")
def listing() -> None:
    """List the studies and the tasks, each with its question or its rule."""
    print("Studies (python -m studies.NAME --help)")
    for name, about in studies():
        print(f"  {name:22}{about}")
    print("  recipes               what practitioners say: python -m studies.recipes --list")
    print("  of your own           python -m studies.run my_study.yaml")
    print("  of a paper            python -m studies.published")
    print("\nReports: python -m studies report STUDY; of all studies: python -m studies findings")
    print("Stored models at new lengths: python -m studies.evaluate RUN --lengths 256,512")
    print("A bundle for a paper: python -m studies freeze STUDY --out DIR")
    print("\nTasks (python -m registry show task NAME --import studies.tasks)")
    for name, about in tasks():
        print(f"  {name:22}{about}")


@app.command()
def report(
    study: Annotated[str, typer.Argument(help="A study that has runs.")],
    out: Annotated[Path | None, typer.Option(help="By default STUDY_report.")] = None,
    storage: Storage = DATABASE,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Make the report in the folder again and tell what differs."),
    ] = False,
) -> None:
    """Write the report of a study from what is stored: a page, and files for a paper beside it."""
    with errors():
        from store.results import Results
        from studies.experiment.plan import latest_plan
        from studies.report.files import check_report, make_report

        folder = out or Path(f"{study}_report")
        with closing(Results(storage)) as results:
            plan = latest_plan(results, study)
        if not verify:
            print(f"report: {make_report(plan, storage, folder)}")
            return
        _refuse(check_report(plan, storage, folder))
    print("The report matches the database: every number and every sentence.")


@app.command()
def findings(
    out: Annotated[Path, typer.Option(help="The Markdown file.")] = Path("findings.md"),
    storage: Annotated[list[str] | None, typer.Option(help="Database URL; repeatable.")] = None,
    study: Annotated[
        list[str] | None, typer.Option(help="Only this study; repeatable; by default all.")
    ] = None,
) -> None:
    """Write one page over all studies that are stored: each question and what became of it."""
    with errors():
        from studies.report.overview import entries, write_overview

        storages, wanted = storage or [DATABASE], study or []
        found = entries(storages, wanted)
        words = [*(f"--storage {one}" for one in storages), *(f"--study {one}" for one in wanted)]
        command = " ".join(["python -m studies findings", *words, f"--out {out}"])
        print(f"findings: {write_overview(found, out, command, studies())}")


@app.command()
def freeze(
    study: Annotated[str | None, typer.Argument(help="A study that has runs.")] = None,
    out: Annotated[Path | None, typer.Option(help="A new folder.")] = None,
    storage: Storage = DATABASE,
    check: Annotated[
        Path | None, typer.Option(help="Check this folder, which an earlier call made.")
    ] = None,
) -> None:
    """Bundle a study for the appendix of a paper, or check such a bundle.

    The folder stands alone: database, weights, configs, frozen plan, environment, report, and a
    MANIFEST with the sha256 of every file.
    """
    with errors():
        if check is not None and study is None and out is None:
            _check_bundle(check)
        elif study is not None and out is not None and check is None:
            from studies.bundle.make import freeze_study

            digest = freeze_study(study, storage, out)
            print(f"Bundle: {out}\nThe sha256 of its MANIFEST identifies it:\n{digest}")
        else:
            fail("usage: freeze STUDY --out DIR, or freeze --check DIR", BAD_INPUT)


def _check_bundle(folder: Path) -> None:
    from studies.bundle.check import check_bundle

    _refuse(check_bundle(folder))
    print(f"{folder} is intact: files, database, plan and every number of the report.")


def _refuse(wrong: Sequence[str]) -> None:
    for line in wrong:
        print(line)
    if wrong:
        raise typer.Exit(WORK_FAILED)


def studies() -> Iterator[tuple[str, str]]:
    """The modules here that define a STUDY, with the first line of their docstrings."""
    for path in sorted(STUDIES.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        targets = [
            target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets
        ]
        if any(isinstance(target, ast.Name) and target.id == "STUDY" for target in targets):
            yield path.stem, _first_line(tree)


def tasks() -> Iterator[tuple[str, str]]:
    """The built-in tasks, with the first line of their docstrings."""
    from studies.tasks import tasks as table

    for name in table:
        path = STUDIES / "tasks" / f"{name}.py"
        yield name, _first_line(ast.parse(path.read_text(encoding="utf-8")))


def _first_line(tree: ast.Module) -> str:
    return (ast.get_docstring(tree) or "").partition("\n")[0]
