"""What became of the promises of a part."""

import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

Status = Literal["kept", "broken", "waived", "not applicable"]


@dataclass(frozen=True)
class Result:
    """What became of one promise.

    Args:
        promise: Its name.
        status: "kept", "broken", "waived" (broken, as the part says) or "not applicable".
        detail: What is broken and where, the reason of the waiver, or why it says nothing here.
    """

    promise: str
    status: Status
    detail: str = ""

    def lines(self, width: int = 100) -> Iterator[str]:
        """The result as text."""
        yield f"  {self.status:14}  {self.promise.replace('_', ' ')}"
        wrapped = textwrap.wrap(self.detail, max(width - 18, 30), break_on_hyphens=False)
        yield from (f"{'':18}{line}" for line in wrapped)


@dataclass(frozen=True)
class Report:
    """What became of every promise of a part.

    Args:
        title: The part's kind and name, its class and file.
        results: One for each promise, in the order of trial.
    """

    title: str
    results: tuple[Result, ...]

    @property
    def ok(self) -> bool:
        """Is no promise broken?"""
        return not any(result.status == "broken" for result in self.results)

    @property
    def summary(self) -> str:
        """How many promises are kept, broken, waived and not applicable."""
        found = Counter(result.status for result in self.results)
        return ", ".join(
            f"{found[status]} {status}" for status in get_args(Status) if found[status]
        )

    def __str__(self) -> str:
        lines = [line for result in self.results for line in result.lines()]
        return "\n".join([self.title, *lines, self.summary])
