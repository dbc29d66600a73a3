"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

DATABASE = "sqlite:///sandbox.db"

Storage = Annotated[str, typer.Option(help="Database URL.")]
Config = Annotated[Path | None, typer.Option(help="YAML file with settings.")]
Plugins = Annotated[
    list[str] | None,
    typer.Option("--import", help="Python file or module that registers parts; repeatable."),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting, as dotted.key=value (YAML); repeatable."),
]
Device = Annotated[Literal["cpu", "cuda", "auto"], typer.Option(help="Where to compute.")]
Report = Annotated[
    Path | None, typer.Option(help="A folder to write a report into, made if missing.")
]

THEN_OF_STUDY: dict[str, Any] = {"allow_interspersed_args": False}
"""Settings of a command whose first word is a study; what follows is for the command of that."""


def new_app() -> typer.Typer:
    """An application without commands."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def help_text(text: str | None) -> str:
    """A docstring as help; the mark keeps the lines of its examples apart."""
    return (text or "").replace("\n\n    ", "\n\n\b\n    ")
