"""Steps to fit in words: how many seeds met the criterion, and after how many steps."""

from typing import TYPE_CHECKING

from studies.statistics.amounts import share

if TYPE_CHECKING:
    from studies.answers.answer import ArmResult
    from studies.training.settings import Until

FIT = "steps_to_fit"


def fit_title(until: "Until") -> str:
    """What was waited for: "steps until accuracy 0.99 at trained lengths"."""
    return f"steps until {until.metric} {until.value:g} at trained lengths"


def fit_times(result: "ArmResult") -> str:
    """What the confirming seeds of an arm needed: "2 of 3 seeds, after 40 to 60 steps".

    A seed that ended, or failed, before it met the criterion counts among all of them.
    """
    scores = [one for of_run in result.scores.values() for one in of_run if one.metric == FIT]
    met = sorted(one.value for one in scores if one.correct and one.value is not None)
    ended = [one.value for one in scores if not one.correct and one.value is not None]
    told = share(len(met), len(result.runs), "seed")
    if met:
        least, most = f"{met[0]:,.0f}", f"{met[-1]:,.0f}"
        told += f", after {least} steps" if least == most else f", after {least} to {most} steps"
    if ended:
        told += f"; {len(ended)} not within {max(ended):,.0f} steps"
    return told
