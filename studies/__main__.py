"""List the studies and the tasks."""

import ast
from collections.abc import Iterator
from pathlib import Path

import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def main() -> None:
    """List the studies and the tasks, each with its question or its rule."""
    print("Studies (python -m studies.NAME --help)")
    for name, about in studies():
        print(f"  {name:22}{about}")
    print("  of your own           python -m studies.run my_study.yaml")
    print("\nTasks (python -m registry show task NAME --import studies.tasks)")
    for name, about in tasks():
        print(f"  {name:22}{about}")


def studies() -> Iterator[tuple[str, str]]:
    """The modules here that define a STUDY, with the first line of their docstrings."""
    for path in sorted(Path(__file__).parent.glob("*.py")):
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
        path = Path(__file__).parent / "tasks" / f"{name}.py"
        yield name, _first_line(ast.parse(path.read_text(encoding="utf-8")))


def _first_line(tree: ast.Module) -> str:
    return (ast.get_docstring(tree) or "").partition("\n")[0]


if __name__ == "__main__":
    app(prog_name="python -m studies")
