"""What the store raises."""

from collections.abc import Iterable
from difflib import get_close_matches

MOST_NAMES = 30
"""So many names are a help; a study has a hundred options."""


class StoreError(Exception):
    """Something that a user can put right: a path, a filter, a value; the message is one line."""


class DamagedError(StoreError):
    """A file that SQLite finds malformed as soon as it opens it."""


def suggest(name: str, known: Iterable[str]) -> str:
    """Say which known names are meant, as the tail of a message.

    Example: `suggest("studdy", ["study", "task"])` is `"did you mean 'study'? Known: study, task"`.
    The end of a dotted key stands for the whole.
    """
    names = sorted(set(known))
    whole = [each for each in names if each.endswith(f".{name}")]
    close = whole[:3] or get_close_matches(name, names, n=1)
    guess = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
    rest = len(names) - MOST_NAMES
    listed = ", ".join(names[:MOST_NAMES]) or "none"
    return f"{guess}Known: {listed}{f' and {rest} more' if rest > 0 else ''}"


def require_known(name: str, known: Iterable[str], refusal: str) -> None:
    """Refuse a name that is not known, and say which are meant.

    Raises:
        StoreError: If it is not known; the message begins with the `refusal`.
    """
    names = list(known)
    if name not in names:
        raise StoreError(f"{refusal}; {suggest(str(name), names)}")
