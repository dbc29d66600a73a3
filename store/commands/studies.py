"""What a database holds, at a glance."""

from typing import TYPE_CHECKING

from store.commands.app import DEFAULT_STORAGE, Storage, app, with_results
from store.commands.asked import Format, Out, Overwrite
from store.writers import Table, format_for, write

if TYPE_CHECKING:
    from store.results import Results


@app.command()
def studies(
    storage: Storage = DEFAULT_STORAGE,
    style: Format = None,
    out: Out = None,
    overwrite: Overwrite = False,
) -> None:
    """Print the studies, with their runs in each status."""

    def work(results: "Results") -> None:
        from store.records import STATUSES

        counts, none = results.counts(), dict.fromkeys(STATUSES, 0)
        rows = [
            {"study": name, **none, **counts.get(name, {}), "description": _first(description)}
            for name, description in results.studies().items()
        ]
        table = Table(["study", *STATUSES, "description"], lambda: rows)
        write(table, format_for(style, out), out, overwrite)

    with_results(storage, work)


def _first(text: str | None) -> str | None:
    """The first line of a description, which says the question."""
    return None if text is None else text.strip().partition("\n")[0]
