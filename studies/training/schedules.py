"""Learning rates over the steps of a training."""

import math
from typing import Literal, get_args

Schedule = Literal["constant", "linear", "cosine", "noam"]
SCHEDULES: tuple[str, ...] = get_args(Schedule)


def rate_at(
    step: int,
    *,
    schedule: Schedule,
    learning_rate: float,
    steps: int,
    warmup_steps: int,
    final_rate: float,
    d_model: int,
) -> float:
    r"""The learning rate of a step; steps count from 1, and no step has rate 0.

    All schedules but noam rise linearly over the warm-up, to `learning_rate` at its last step.
    Then `constant` stays there, `linear` and `cosine` fall to `final_rate` times it at the last
    step, and stay there beyond it. `noam` is
    $learning\_rate \cdot d_{model}^{-1/2} \min(s^{-1/2}, s \cdot w^{-3/2})$ for step s and warm-up
    w, so there `learning_rate` is a factor, not the peak.

    Source: Vaswani et al. 2017, equation 3 (arXiv:1706.03762), for noam; Loshchilov and Hutter
    2017 (arXiv:1608.03983), for cosine.
    """
    if schedule == "noam":
        warm = max(warmup_steps, 1)
        return learning_rate * d_model**-0.5 * min(step**-0.5, step * warm**-1.5)
    if step <= warmup_steps:
        return learning_rate * step / warmup_steps
    if schedule == "constant":
        return learning_rate
    done = min((step - warmup_steps) / max(steps - warmup_steps, 1), 1.0)
    fallen = done if schedule == "linear" else (1 - math.cos(math.pi * done)) / 2
    return learning_rate * (1 - (1 - final_rate) * fallen)
