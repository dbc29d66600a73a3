"""Ask a results database, keep it, and share it."""

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

# Each with the module that holds it, as `--help` lists them: what is there, one run, questions, the
# file.
COMMANDS = {
    **dict.fromkeys(("studies", "runs", "scores", "curves", "export", "show", "diff"), "rows"),
    **dict.fromkeys(("lengths", "best", "cost", "failures", "changed"), "questions"),
    **dict.fromkeys(("sql", "schema", "check", "backup", "upgrade", "prune"), "files"),
}


def command_line(names: Sequence[str] = tuple(COMMANDS)) -> "typer.Typer":
    """Return the command line with all commands, or with those of these names alone."""
    from store.cli.options import app, new_app

    for home in dict.fromkeys(COMMANDS[name] for name in names):
        import_module(f"store.cli.{home}")
    made = {getattr(one.callback, "__name__", ""): one for one in app.registered_commands}
    chosen = new_app()
    chosen.registered_commands = [made[name] for name in names]
    return chosen


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line."""
    # What is imported stays, to the end: to search it for garbage would take a third of the time
    # of a short command. Nor are commands made that are not asked for.
    gc.set_threshold(100_000)
    given = sys.argv[1:] if words is None else list(words)
    asked = [name for name in given[:1] if name in COMMANDS]
    try:
        command_line(asked or tuple(COMMANDS))(args=given, prog_name="python -m store")
    finally:
        gc.freeze()


if __name__ == "__main__":
    main()
