"""Ask a results database, keep it, and share it."""

import gc
from collections.abc import Sequence
from importlib import import_module

from store.commands.app import app

# As `--help` lists them: what is there, one run, questions, the file.
COMMANDS = (
    *("studies", "runs", "scores", "curves", "export", "show", "diff"),
    *("lengths", "best", "cost", "failures", "changed"),
    *("sql", "schema", "check", "backup", "upgrade", "prune"),
)

for home in ("studies", "rows", "single", "questions", "files"):
    import_module(f"store.commands.{home}")
app.registered_commands.sort(
    key=lambda command: COMMANDS.index(getattr(command.callback, "__name__", ""))
)


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line."""
    # What is imported stays: to search it for garbage would take a tenth of a short command.
    gc.set_threshold(100_000)
    app(args=words, prog_name="python -m store")


if __name__ == "__main__":
    main()
