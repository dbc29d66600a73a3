"""What a task certifies about itself: its floors, and a certificate for each length."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Floors:
    """The accuracy of the best predictors that see almost nothing.

    `constant` always gives one class. `index` sees the output's index and the length. `bag` sees
    the tokens of the sequence without their order, and not the index. A model without positions
    can pass the bag's floor, because it also sees the token at the place where it answers.
    """

    constant: float
    index: float
    bag: float

    @property
    def highest(self) -> float:
        """The highest floor below 1, from which skill is measured.

        A floor of 1 means that its predictor solves the task (majority from the bag of tokens),
        so it is no floor for a model; skill is measured from the next lower one.
        """
        below = [floor for floor in (self.constant, self.index, self.bag) if floor < 1 - 1e-9]
        return max(below, default=0.0)


@dataclass(frozen=True)
class Certificate:
    """What one length of a task is like, measured on a seeded sample.

    `solver_accuracy` compares `solve` with the sampled targets and must be 1. `class_shares` are
    the shares of the classes among the scored targets, `scored_share` the share of targets that
    are scored.
    """

    length: int
    solver_accuracy: float
    class_shares: tuple[float, ...]
    floors: Floors
    scored_share: float

    @property
    def largest_share(self) -> float:
        """The share of the commonest class."""
        return max(self.class_shares)
