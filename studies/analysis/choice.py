"""What tuning tried and chose, and what other settings would have shown; no verdict uses these.

Settings that fit as well may extrapolate differently, and published tables often choose on the
test lengths themselves. Both are shown beside the answer, from the tuning runs alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from studies.experiment.tune import Setting, in_words

if TYPE_CHECKING:
    from store.records import Choice, Run, Score

ORACLE = "best on the test lengths (an oracle, used for no verdict)"
NEAR = "fits as well"
CHOSEN = "chosen"


@dataclass(frozen=True)
class Tried:
    """A setting that was tried in tuning.

    Args:
        label: In words.
        nll: Its mean validation nll (nats); None where a run of it has none.
        chosen: Was it chosen?
        at_edge: Is one of its values the lowest or highest tried?
        note: Why it has no nll, or that it is as good as the one chosen.
    """

    label: str
    nll: float | None
    chosen: bool = False
    at_edge: bool = False
    note: str = ""


def tried_settings(choice: "Choice", runs: Sequence["Run"]) -> list[Tried]:
    """What was tried, in its order; `runs` are those of tuning."""
    known = {run.id: run for run in runs}
    shown: list[Tried] = []
    for one in choice.tried:
        chosen, near = one["setting"] == choice.setting, one["setting"] in choice.near
        ended = sorted({known[run].reason or known[run].status for run in one["runs"]})
        note = "; ".join(ended) if one["nll"] is None else NOTED * near
        at_edge = chosen and bool(choice.edges)
        shown.append(Tried(in_words(one["setting"]), one["nll"], chosen, at_edge, note))
    return shown


NOTED = "as good, within the tolerance"


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
    choice: "Choice", beyond: Sequence[int], scores: Mapping[int, Sequence["Score"]]
) -> list[Alternative]:
    """The chosen setting, those that fit as well, and the one that is best on the test lengths.

    Empty where there is nothing beside the chosen one, or nothing beyond the trained lengths.

    Args:
        choice: What tuning chose.
        beyond: The tested lengths beyond the trained ones.
        scores: Of the tuning runs, by run.
    """
    found = {
        number: skills
        for number, one in enumerate(choice.tried)
        if (skills := _skills(one["runs"], beyond, scores)) and len(skills) == len(beyond)
    }
    if not found or choice.setting is None:
        return []
    best = max(found, key=lambda number: sum(found[number].values()))
    shown: list[Alternative] = []
    for number, skills in found.items():
        setting = choice.tried[number]["setting"]
        roles = [CHOSEN] if setting == choice.setting else []
        roles += [NEAR] if setting in choice.near else []
        roles += [ORACLE] if number == best else []
        if roles:
            shown.append(Alternative(setting, tuple(roles), skills))
    return shown if len(shown) > 1 else []


def _skills(
    runs: Sequence[int], lengths: Sequence[int], scores: Mapping[int, Sequence["Score"]]
) -> dict[int, float]:
    """The mean over the tuning seeds at each length that was measured."""
    skills: dict[int, float] = {}
    for length in lengths:
        place = "test", "skill", length, None, False
        values = [
            one.value
            for run in runs
            for one in scores.get(run, ())
            if (one.split, one.metric, one.length, one.bin, one.later) == place
            and one.value is not None
        ]
        if values:
            skills[length] = sum(values) / len(values)
    return skills
