"""The command line that the commands join, and how each of them ends."""

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from store.errors import StoreError, nearest
from store.output import Table, arrange, format_for, telling, write

if TYPE_CHECKING:
    from store.results import Results
    from store.where import Selection


DEFAULT_STORAGE = "sqlite:///sandbox.db"
BAD_INPUT, INTERRUPTED = 2, 130

Storage = Annotated[str, typer.Option(help="Database URL.")]


def new_app() -> typer.Typer:
    """A command line without commands. It has names for them, even if it gets but one."""
    made = typer.Typer(
        help="Ask a results database, keep it, and share it.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    made.callback()(lambda: None)
    return made


app = new_app()


def with_results(storage: str, work: Callable[["Results"], None]) -> None:
    """Open the results, do the work, and close them; errors become a line and an exit code."""

    def guarded() -> None:
        from store.results import Results

        results = Results(storage)
        try:
            work(results)
        finally:
            results.close()

    guard(guarded)


def guard(work: Callable[[], None]) -> None:
    """Do the work; what a user can mend becomes one line on standard error and exit code 2."""
    try:
        work()
        sys.stdout.flush()
    except StoreError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(BAD_INPUT) from error
    except KeyboardInterrupt as error:
        print("stopped", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from error
    except BrokenPipeError as error:
        # The reader has left, as `| head` does; the interpreter would complain at its last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from error


# What an empty answer lists, where a condition names it.
NAMED = ("study", "task", "arm", "split", "metric", "length")
# A terminal shows so many rows unless told otherwise.
PAGE = 100

Study = Annotated[str | None, typer.Option(help="Only this study.")]
Task = Annotated[str | None, typer.Option(help="Only this task.")]
Arm = Annotated[str | None, typer.Option(help="Only this arm.")]
Phase = Annotated[str, typer.Option(help="confirm, tune or all.")]
Current = Annotated[
    bool,
    typer.Option(
        "--current/--with-superseded",
        help="Only runs that the last call of their study asked for, or older ones too.",
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        help="A condition in Python's syntax, such as "
        '\'position in ("rope", "alibi") and training.learning_rate < 1e-3\'.'
    ),
]
Format = Annotated[
    str | None, typer.Option("--format", help="table, csv, json, markdown or parquet.")
]
Sort = Annotated[str | None, typer.Option(help="Sort by a column; -COLUMN for descending.")]
Limit = Annotated[int | None, typer.Option(help="Print at most so many rows.")]
Columns = Annotated[
    str | None,
    typer.Option(help="Only these columns, joined by commas; dotted config keys too."),
]
OnlyChanged = Annotated[
    bool, typer.Option("--only-changed", help="Only columns that differ between the rows.")
]
Out = Annotated[
    str | None, typer.Option(help="Write to this file, in the format that its suffix names.")
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace the file of --out where there is one.")
]


@dataclass(frozen=True)
class Asked:
    """What was typed, common to the commands that print rows."""

    results: "Results"
    storage: str
    study: str | None
    task: str | None
    arm: str | None
    phase: str
    current: bool
    where: str | None
    style: str | None
    sort: str | None
    limit: int | None
    columns: str | None
    only_changed: bool
    out: str | None
    overwrite: bool

    def selection(self, **match: object) -> "Selection":
        """Return which runs are meant, after a look at whether the names exist."""
        from store.where import Selection

        given = {"study": self.study, "task": self.task, "arm": self.arm}
        wanted = {name: value for name, value in given.items() if value is not None}
        for name, value in wanted.items():
            known = set(self.results.studies()) if name == "study" else self.results.names(name)
            if value not in known:
                raise StoreError(f"no {name} is named {value!r}; {nearest(value, known)}")
        return Selection(self.where, self.phase, self.current, {**wanted, **match})

    def names(self) -> list[str]:
        """Return the columns that were asked for by name."""
        given = (self.columns or "").split(",")
        return [name.strip() for name in given if name.strip()]

    def format(self, otherwise: str = "table") -> str:
        """Return the format to print in."""
        return format_for(self.style, self.out, otherwise)

    def show(
        self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], shown: Sequence[str] = ()
    ) -> None:
        """Print rows that are all there; a table for people has the columns `shown`, if given."""
        style = self.format()
        wanted = self.names() or (list(shown) if shown and style == "table" else list(columns))
        for name in wanted:
            if name not in columns:
                raise StoreError(f"there is no column {name!r}; {nearest(name, columns)}")
        arranged = arrange(rows, columns, self.sort, None)
        kept = arranged if self.limit is None else arrange(arranged, columns, None, self.limit)
        if self.only_changed:
            wanted = telling(kept, wanted)
        self.write(Table(wanted, lambda: kept), style)

    def write(self, table: Table, style: str) -> None:
        """Write a table where it was asked for."""
        count = write(table, style, self.out, self.overwrite)
        if self.out is not None:
            print(f"{count} rows are in {self.out}", file=sys.stderr)
        elif count == 0 and style == "table":
            print(f"no row is of these{self._there()}", file=sys.stderr)

    def _there(self) -> str:
        """Tell what there is of that which the condition names: it may ask for what is not."""
        named = [name for name in NAMED if name in re.findall("[a-z_]+", self.where or "")]
        told = (
            f"{name}: {', '.join(map(str, sorted(self.results.names(name))))}" for name in named
        )
        return "".join(f"; {each}" for each in told)


def asking(
    *, phase: str = "confirm", current: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function of what was asked: its own options, then the common ones."""
    common = _common(phase, current)

    def decorate(work: Callable[..., None]) -> Callable[..., None]:
        own = list(signature(work).parameters.values())[1:]

        def command(**given: Any) -> None:
            mine = {one.name: given.pop(one.name) for one in own}
            with_results(
                given["storage"], lambda results: work(Asked(results=results, **given), **mine)
            )

        command.__name__, command.__doc__ = work.__name__, work.__doc__
        parameters = [*own, *common]
        # Typer reads a command's options from these two.
        command.__signature__ = signature(work).replace(parameters=parameters)  # pyright: ignore[reportFunctionMemberAccess]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        return app.command()(command)

    return decorate


def _common(phase: str, current: bool) -> list[Parameter]:
    options: dict[str, tuple[Any, Any]] = {
        "storage": (Storage, DEFAULT_STORAGE),
        "study": (Study, None),
        "task": (Task, None),
        "arm": (Arm, None),
        "phase": (Phase, phase),
        "current": (Current, current),
        "where": (Where, None),
        "style": (Format, None),
        "sort": (Sort, None),
        "limit": (Limit, None),
        "columns": (Columns, None),
        "only_changed": (OnlyChanged, False),
        "out": (Out, None),
        "overwrite": (Overwrite, False),
    }
    assert list(options) == [each.name for each in fields(Asked)][1:]
    return [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in options.items()
    ]
