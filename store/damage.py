"""What a file holds that no database wrote: each is told as damage, in one line."""

import json
from typing import Any

from sqlalchemy import ExceptionContext

from store.errors import DamagedError

NOT_UTF8 = "it holds text that is not UTF-8"


def from_json(text: str) -> Any:
    """Read a JSON column.

    Raises:
        DamagedError: If it is no JSON.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise DamagedError(
            f"the database is damaged: a value that should be JSON is not ({error}); "
            "`python -m store check` says more"
        ) from error


def name_damage(place: str, context: ExceptionContext) -> None:
    """Say which file is damaged, where the driver could not even read SQLite's message.

    SQLite quotes what is wrong with a schema, in bytes that need not be text.

    Raises:
        DamagedError: If that is what went wrong.
    """
    if isinstance(context.original_exception, UnicodeDecodeError):
        raise DamagedError(f"{place} is damaged: {NOT_UTF8}")
