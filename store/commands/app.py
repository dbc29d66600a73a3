"""The command line that the commands join, and how each of them ends."""

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from store.errors import StoreError

if TYPE_CHECKING:
    from store.results import Results

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
