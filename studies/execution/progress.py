"""Show a study at work: a live table on a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from studies.experiment.plan import Cell, Plan

LINE_SECONDS = 15.0
SIGNS = {
    "done": ("●", "green"),
    "running": ("◐", "cyan"),
    "planned": ("·", "dim"),
    "diverged": ("~", "yellow"),
    "failed": ("✗", "red"),
    "not_applicable": ("–", "dim"),
}


@dataclass(frozen=True)
class Progress:
    """The state of a study at work.

    `steps` counts the training steps done in this call, `steps_left` those still to be done; None
    where a run to be done has no steps to count.
    """

    tuning: dict[Cell, list[str]]
    confirming: dict[Cell, list[str]]
    expected: int
    steps: int
    seconds: float
    steps_left: int | None = None

    @property
    def finished(self) -> int:
        """The number of runs that have ended, in this call or before."""
        return self.count("done", "diverged", "failed", "not_applicable")

    def count(self, *statuses: str) -> int:
        """The number of runs in these statuses."""
        groups = [*self.tuning.values(), *self.confirming.values()]
        return sum(status in statuses for group in groups for status in group)


class Display:
    """Shows progress on standard error; use it as a context."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.console = Console(stderr=True)
        self.live: Live | None = None
        self.last_line = 0.0
        self.time_left = TimeLeft()

    def __enter__(self) -> "Display":
        if self.console.is_terminal:
            self.live = Live(console=self.console, refresh_per_second=4, transient=True)
            self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.live is not None:
            self.live.stop()

    def show(self, progress: Progress) -> None:
        """Show where the study stands."""
        summary = self.summary(progress)
        if self.live is not None:
            self.live.update(Group(Text(summary), self.grid(progress)))
        elif (
            time.monotonic() - self.last_line > LINE_SECONDS
            or progress.finished == progress.expected
        ):
            self.last_line = time.monotonic()
            self.console.print(summary, highlight=False, soft_wrap=True)

    def summary(self, progress: Progress) -> str:
        """One line: runs, speed, time left."""
        parts = [f"{progress.finished} of {progress.expected} runs"]
        if progress.seconds > 0 and progress.steps:
            parts.append(f"{progress.steps / progress.seconds:.0f} steps/s")
        failed, left = progress.count("failed"), self.time_left.seconds(progress)
        parts += [f"{failed} failed"] if failed else []
        parts += [f"about {duration(left)} left"] if left else []
        return " · ".join(parts)

    def grid(self, progress: Progress) -> Table:
        """Arms × seeds: one sign a run."""
        table = Table(box=None, pad_edge=False)
        for column in ("task", "arm", "tune", "confirm"):
            table.add_column(column, no_wrap=True)
        shown = ""
        for cell, tuning in progress.tuning.items():
            confirming = progress.confirming.get(cell, [])
            waiting = self.plan.protocol.seeds - len(confirming)
            confirm = _signs([*confirming, *["planned"] * waiting])
            table.add_row(
                "" if cell.task == shown else cell.task, cell.arm, _signs(tuning), confirm
            )
            shown = cell.task
        return table


def _signs(statuses: list[str]) -> Text:
    text = Text()
    for status in statuses:
        sign, style = SIGNS[status]
        text.append(sign, style=style)
    return text


def duration(seconds: float) -> str:
    """A time span in words: "0.3 s", "40 s", "6 min", "2.5 h"."""
    if seconds < 1:
        return f"{max(seconds, 0.1):.1f} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"


SETTLED_SECONDS = 2.0
"""A speed that was measured for less time than this is not told."""


def steps_left(each: Iterable[int], at_hand: Iterable[int]) -> int | None:
    """Training steps to be done of unfinished runs; None if one of them has none to count by.

    Args:
        each: The planned steps of every run that is not finished.
        at_hand: The steps that those in work have done; a criterion of fit may allow more than
            were planned.
    """
    planned = list(each)
    if not all(planned):
        return None
    return max(0, sum(planned) - sum(at_hand))


class TimeLeft:
    """Seconds left of one call: steps left at its speed, or runs left where steps tell nothing.

    The clock of the speed starts with the first step that is seen, since workers need seconds to
    start. Steps of runs that were done before this call are in neither.
    """

    def __init__(self) -> None:
        self.first: tuple[float, int] | None = None
        self.at_start: int | None = None
        self.last_end: tuple[float, int] = 0.0, 0

    def seconds(self, progress: "Progress") -> float | None:
        """Seconds left as far as one can tell, or None."""
        if self.at_start is None:
            self.at_start = progress.finished
        if self.first is None and progress.steps:
            self.first = progress.seconds, progress.steps
        here = progress.finished - self.at_start
        if here > self.last_end[1]:
            self.last_end = progress.seconds, here
        if progress.finished >= progress.expected:
            return None
        if progress.steps_left is None or (here and not progress.steps):
            return self._by_runs(progress)
        return self._by_steps(progress, progress.steps_left)

    def _by_steps(self, progress: "Progress", left: int) -> float | None:
        since, before = self.first or (progress.seconds, progress.steps)
        span, done = progress.seconds - since, progress.steps - before
        return left * span / done if done and span >= SETTLED_SECONDS else None

    def _by_runs(self, progress: "Progress") -> float | None:
        """At the pace up to the last end of a run; what passed since counts as part of the next."""
        ended, here = self.last_end
        if not here:
            return None
        a_run = ended / here
        part = min(progress.seconds - ended, a_run)
        return (progress.expected - progress.finished) * a_run - part
