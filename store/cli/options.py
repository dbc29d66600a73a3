"""The command line that the commands join, the options they share, and how each of them ends."""

import os
import re
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from store.errors import StoreError, require_known
from store.output import Table, arrange, format_for, telling, write

if TYPE_CHECKING:
    from store.results import Results
    from store.where import Selection


DEFAULT_STORAGE = "sqlite:///sandbox.db"
BAD_INPUT, INTERRUPTED = 2, 130
# A terminal shows so many rows unless --limit says otherwise.
PAGE = 100
# What an empty answer lists, where a condition names it.
NAMED = ("study", "task", "arm", "split", "metric", "length")


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


@contextmanager
def guard() -> Generator[None]:
    """Turn what a user can mend into one line on standard error and exit code 2."""
    try:
        yield
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


def command(work: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function, whose errors end it as `guard` says."""
    return app.command()(guard()(work))


@contextmanager
def results_of(storage: str) -> Generator["Results"]:
    """Open the results of a database, and close them at the end."""
    from store.results import Results

    with closing(Results(storage)) as results:
        yield results


Storage = Annotated[str, typer.Option(help="Database URL.")]
Study = Annotated[str | None, typer.Option(help="Only this study.")]
Task = Annotated[str | None, typer.Option(help="Only this task.")]
Arm = Annotated[str | None, typer.Option(help="Only this arm.")]
Phase = Annotated[str, typer.Option(help="confirm, tune or all.")]
Current = Annotated[
    bool,
    typer.Option(
        "--current/--with-superseded",
        help="Leave out runs that a later call of their study replaced, or show them too.",
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


@dataclass(frozen=True, kw_only=True)
class Query:
    """The options that the commands which print rows have in common, as they were typed."""

    results: "Results"
    storage: Storage = DEFAULT_STORAGE
    study: Study = None
    task: Task = None
    arm: Arm = None
    phase: Phase = "confirm"
    current: Current = False
    where: Where = None
    style: Format = None
    sort: Sort = None
    limit: Limit = None
    columns: Columns = None
    only_changed: OnlyChanged = False
    out: Out = None
    overwrite: Overwrite = False

    def keywords(self) -> dict[str, Any]:
        """Return what a query of `Results` takes, after a look at whether the names exist."""
        given = {"study": self.study, "task": self.task, "arm": self.arm}
        match = {name: value for name, value in given.items() if value is not None}
        for name, value in match.items():
            known = self.results.studies() if name == "study" else self.results.names(name)
            require_known(value, known, f"no {name} is named {value!r}")
        return {"where": self.where, "phase": self.phase, "current": self.current, **match}

    def selection(self) -> "Selection":
        """Return which runs are meant."""
        from store.where import Selection

        match = self.keywords()
        return Selection(match.pop("where"), match.pop("phase"), match.pop("current"), match)

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
            require_known(name, columns, f"there is no column {name!r}")
        kept = arrange(rows, columns, self.sort, self.limit)
        if self.only_changed:
            wanted = telling(kept, wanted)
        self.write(Table(wanted, lambda: kept), style)

    def write(self, table: Table, style: str) -> None:
        """Write a table where it was asked for."""
        count = write(table, style, self.out, self.overwrite)
        if self.out is not None:
            print(f"{count} rows are in {self.out}", file=sys.stderr)
        elif count == 0 and style == "table":
            # The condition may ask for what is not there.
            named = [name for name in NAMED if name in re.findall("[a-z_]+", self.where or "")]
            there = (
                f"; {name}: {', '.join(map(str, sorted(self.results.names(name))))}"
                for name in named
            )
            print(f"no rows match{''.join(there)}", file=sys.stderr)


def query_command(
    *, phase: str = "confirm", current: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function of a `Query`: its own options, then the common ones."""
    defaults = {"phase": phase, "current": current}
    common = [
        Parameter(
            each.name,
            Parameter.KEYWORD_ONLY,
            default=defaults.get(each.name, each.default),
            annotation=each.type,
        )
        for each in fields(Query)
        if each.name != "results"
    ]

    def decorate(work: Callable[..., None]) -> Callable[..., None]:
        own = list(signature(work).parameters.values())[1:]

        def run(**given: Any) -> None:
            mine = {one.name: given.pop(one.name) for one in own}
            with results_of(given["storage"]) as results:
                work(Query(results=results, **given), **mine)

        run.__name__, run.__doc__ = work.__name__, work.__doc__
        parameters = [*own, *common]
        # Typer reads a command's options from these two.
        run.__signature__ = signature(work).replace(parameters=parameters)  # pyright: ignore[reportFunctionMemberAccess]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return command(run)

    return decorate
