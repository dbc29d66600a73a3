"""A question and its answers as text that can be checked by eye."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from einops import rearrange

from studies.tasks._estimates import UNSCORED

if TYPE_CHECKING:
    from studies.tasks.task import Task


def shown(task: "Task", symbols: Sequence[int]) -> str:
    """The tokens of a question in one line, its targets below them in columns."""
    tokens = task.pose(torch.tensor([list(symbols)]))
    targets = task.solve(tokens)
    spelled = [task.spell(token) for token in tokens[0].tolist()]
    if targets.ndim == 1:
        return f"tokens   {' '.join(spelled)}\nanswer   {_target(targets.item())}"
    lines = rearrange(targets[0], "seq ... -> (...) seq").tolist()
    rows = [spelled, *([_target(target) for target in line] for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        f"{title}  {' '.join(map(str.rjust, row, widths))}".rstrip()
        for title, row in zip(["tokens ", *["targets"] * len(lines)], rows, strict=True)
    )


def _target(label: int | float) -> str:
    return "." if label == UNSCORED else str(label)
