"""What the seeds say about a hypothesis that was written down before them."""

from dataclasses import dataclass
from typing import Literal

from studies.experiment.hypothesis import Hypothesis

Status = Literal["supported", "refuted", "inconclusive", "not tested"]


@dataclass(frozen=True)
class Verdict:
    """What the seeds say about a hypothesis.

    Args:
        hypothesis: The claim.
        status: "supported" or "refuted" where the interval of the effect leaves no other reading,
            "inconclusive" where it does, "not tested" where there is a `reason` not to ask.
        effect: Mean of the arm minus mean of what it is compared with; of an interaction, less the
            same difference of the other pair.
        low: The lower bound of the interval that holds for the whole family at once.
        high: Its upper bound.
        p: Of the permutation test: of no difference against the claimed one, or, where "same" is
            claimed, of a difference as large as the smallest effect of interest. Where seeds
            failed, the largest of all that they might have scored.
        p_holm: `p`, adjusted for the family.
        n_arm: Seeds of the arm.
        n_against: Seeds of what it is compared with.
        failed_arm: How many of them diverged or failed; they are counted.
        failed_against: Likewise.
        n_than: Seeds of each arm of the other pair of an interaction.
        failed_than: How many of them diverged or failed.
        seeds_needed: How many seeds per arm would settle an inconclusive claim; None where it is
            settled, or where more than `power.MOST` would be needed.
        reason: Why it was not tested, or what else keeps it from being settled.
        exploratory: Did the hypothesis, or some of the seeds, come after the plan was frozen?
        family: How many hypotheses the interval and `p_holm` account for.
        level: Of the family of intervals.
        notes: What a reader must know beside the numbers, each a sentence.
    """

    hypothesis: Hypothesis
    status: Status
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None
    n_arm: int = 0
    n_against: int = 0
    failed_arm: int = 0
    failed_against: int = 0
    n_than: tuple[int, ...] = ()
    failed_than: tuple[int, ...] = ()
    seeds_needed: int | None = None
    reason: str = ""
    exploratory: bool = False
    family: int = 1
    level: float = 0.95
    notes: tuple[str, ...] = ()
