"""Numbers as a report prints them: each with a key, so that a reader can check it again."""

import html
import math
import re
from dataclasses import dataclass, field


@dataclass
class Numbers:
    """Every number of one page, by its key: the exact value and the text that is shown."""

    known: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    def show(self, value: float | None, key: str, digits: int | None = 2) -> str:
        """A number as HTML that carries its key and its exact value.

        Raises:
            ValueError: If another number has this key.
        """
        return self._shown("" if value is None else repr(value), plain(value, digits), key)

    def quote(self, text: str, key: str) -> str:
        """Words with numbers in them, as HTML that carries their key.

        Raises:
            ValueError: If other words have this key.
        """
        return self._shown("", text, key)

    def _shown(self, exact: str, text: str, key: str) -> str:
        if self.known.setdefault(key, (exact, text)) != (exact, text):
            raise ValueError(f"two numbers of a page have the key {key!r}")
        shown = html.escape(text)
        return f'<data value="{exact}" data-key="{html.escape(key)}">{shown}</data>'


def plain(value: float | None, digits: int | None = 2) -> str:
    """A number with so many digits after the point, None: three digits that count; else n/a.

    What is not 1 is not shown as 1; a zero has no sign.
    """
    if value is None or math.isnan(value):
        return "n/a"
    if digits is None:
        return f"{value:.3g}".replace("-", "−", 1) if value < 0 else f"{value:.3g}"
    if digits == 0:
        return f"{value:,.0f}"
    text, least = f"{value:.{digits}f}", 10.0**-digits
    if value != 1 and float(text) == 1:
        text = f"{1 - math.copysign(least, 1 - value):.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−", 1)


NUMBER = re.compile(r'<data value="([^"]*)" data-key="([^"]*)">(.*?)</data>', re.DOTALL)


def read_numbers(page: str) -> dict[str, tuple[str, str]]:
    """Read the numbers of a page by key, as `Numbers.known` holds them."""
    found: dict[str, tuple[str, str]] = {}
    for exact, key, text in (map(html.unescape, one) for one in NUMBER.findall(page)):
        found[key] = exact, found.get(key, ("", ""))[1] + text
    return found


def mismatches(page: str, fresh: Numbers) -> list[str]:
    """Compare the numbers of a page with those of the same page made anew, a line each."""
    old, new = read_numbers(page), fresh.known
    lines = [f"{key}: the page has a number that the database lacks" for key in old.keys() - new]
    lines += [f"{key}: the database has a number that the page lacks" for key in new.keys() - old]
    lines += [
        f"{key}: the page says {_both(*old[key])}, the database {_both(*new[key])}"
        for key in old.keys() & new.keys()
        if old[key] != new[key]
    ]
    return sorted(lines)


def _both(exact: str, text: str) -> str:
    return f"{text} ({exact})" if exact else text
