"""What other settings than the chosen one would have shown, from the tuning runs alone.

Settings that fit as well may extrapolate differently, and published tables often choose on the
test lengths themselves. Both are shown beside the answer; no verdict uses them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from studies.experiment.plan import Cell, Plan
from studies.experiment.settings import Setting
from studies.experiment.tune import Chosen, Tried, in_words

if TYPE_CHECKING:
    from store.records import Score


ORACLE = "best on the test lengths (an oracle, used for no verdict)"
NEAR = "fits as well"
CHOSEN = "chosen"


@dataclass(frozen=True)
class Alternative:
    """A setting with the mean test skill of its tuning runs at each length beyond training.

    `roles` say why it is shown; the chosen setting is among them, to compare with.
    """

    setting: Setting
    roles: tuple[str, ...]
    skills: Mapping[int, float]

    @property
    def mean(self) -> float:
        """The mean over the lengths."""
        return sum(self.skills.values()) / len(self.skills)

    def __str__(self) -> str:
        skills = ", ".join(f"{skill:z.2f} at {length}" for length, skill in self.skills.items())
        return f"{in_words(self.setting)}: {' and '.join(self.roles)}; skill {skills}"


def alternatives(
    plan: Plan, cell: Cell, chosen: Chosen, tried: Sequence[Tried], scores: Iterable["Score"]
) -> list[Alternative]:
    """The chosen setting, those that fit as well, and the one that is best on the test lengths.

    Empty where there is nothing beside the chosen one, or nothing beyond the trained lengths.
    """
    config = plan.config(cell)
    beyond = [
        one for one in config.evaluation.test_lengths if one > config.training.train_lengths[1]
    ]
    known = list(scores)
    found = {
        number: skills
        for number, one in enumerate(tried)
        if (skills := _skills(one, beyond, known)) and len(skills) == len(beyond)
    }
    if not found or chosen.setting is None:
        return []
    best = max(found, key=lambda number: sum(found[number].values()))
    shown: list[Alternative] = []
    for number, skills in found.items():
        setting = tried[number].setting
        roles = [CHOSEN] if setting == chosen.setting else []
        roles += [NEAR] if setting in chosen.near else []
        roles += [ORACLE] if number == best else []
        if roles:
            shown.append(Alternative(setting, tuple(roles), skills))
    return shown if len(shown) > 1 else []


def _skills(one: Tried, lengths: Sequence[int], scores: Sequence["Score"]) -> dict[int, float]:
    """The mean over the tuning seeds at each length that was measured."""
    runs = {run.id for run in one.runs}
    skills: dict[int, float] = {}
    for length in lengths:
        values = [
            score.value
            for score in scores
            if score.run_id in runs
            and (score.split, score.metric, score.length) == ("test", "skill", length)
            and score.bin is None
            and score.value is not None
        ]
        if values:
            skills[length] = sum(values) / len(values)
    return skills
