"""Train and score as usual, and measure what a step costs while at it."""

import time
from dataclasses import replace
from itertools import pairwise
from statistics import median

from studies.training.execute import train_and_score
from studies.training.outcome import Measured, Outcome, Work


def perform(work: Work) -> Outcome:
    """Do a run as it is done by default, with one metric more, `step_milliseconds`.

    It is the median over training steps of the time from the end of one to the end of the next:
    on the CPU of this process, so that other processes do not count; on a GPU by the clock, which
    the loss of each step, read on the host, keeps in step. It depends on the machine, and so is
    stored once, not made anew.
    """
    clock = time.perf_counter if work.device.type == "cuda" else time.process_time
    ends: list[float] = []

    def after_step() -> None:
        ends.append(clock())
        work.after_step()

    outcome = train_and_score(replace(work, after_step=after_step))
    steps = [end - start for start, end in pairwise(ends)]
    if steps and outcome.status == "done":
        longest = work.config.training.train_lengths[1]
        cost = Measured("train", longest, "step_milliseconds", len(steps), median(steps) * 1000)
        outcome.scores.append(cost)
    return outcome
