"""The frozen plan: what was announced before the first confirming run decides, once and for all."""

from pathlib import Path
from typing import Any

import pytest

from registry import ConfigError
from store import Results
from store.ledger import Ledger
from studies.experiment.draft import Draft
from studies.experiment.freeze import freeze, frozen_for, protocol_of
from studies.experiment.overrides import gather
from studies.experiment.resolve import resolve
from studies.experiment.study import Budget, Study
from tests.messages import Messages


def claim(name: str, **other: Any) -> dict[str, Any]:
    return {
        "name": name, "claim": "they differ", "arm": "rope", "against": "none", "panel": "shift",
        "lengths": [16], **other,
    }  # fmt: skip


def draft(*claims: dict[str, Any], panels: tuple[Any, ...] = ("shift",), **study: Any) -> Draft:
    settings: dict[str, Any] = {
        "panels": [{"task": task} for task in panels],
        "arms": ["rope", "none"],
        "learning_rates": [1e-3],
        "hypotheses": list(claims) or [claim("first")],
        "seeds": 4,
        **study,
    }
    made = Study("s", "?", "?", ("encoder.position",), {"own": Budget("", {})})
    return Draft(made, gather({"study": settings}))


class Kept:
    """A database in which plans are frozen."""

    def __init__(self, folder: Path) -> None:
        url = f"sqlite:///{folder / 'sandbox.db'}"
        self.ledger, self.results = Ledger.create(url), Results(url)

    def planned(self, made: Draft) -> list[int]:
        plan = resolve(made)
        first = plan.protocol.tried[0]
        return self.ledger.plan(
            run for cell in plan.cells() for run in plan.confirming(cell, first)
        )

    def freeze(self, made: Draft) -> Any:
        plan = resolve(made)
        return frozen_for(plan, freeze(plan, self.ledger, self.results, self.planned(made)))

    def begin(self, made: Draft) -> None:
        assert self.ledger.claim("w", self.planned(made)) is not None


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def names(frozen: Any) -> list[str]:
    return [one.name for one in frozen.hypotheses]


def test_what_is_announced_before_the_first_confirming_run_is_primary(kept: Kept) -> None:
    frozen = kept.freeze(draft())

    assert (names(frozen), frozen.seeds) == (["first"], (0, 1, 2, 3))


def test_later_seeds_arms_and_hypotheses_change_nothing_of_it(kept: Kept) -> None:
    before = kept.freeze(draft())
    kept.begin(draft())

    later = draft(claim("first"), claim("second"), seeds=9, arms=["rope", "none", "alibi"])

    assert kept.freeze(later) == before


def test_a_changed_hypothesis_is_no_longer_the_announced_one(kept: Kept) -> None:
    kept.freeze(draft())
    kept.begin(draft())
    changed = draft(claim("first", smallest_effect=0.01))

    frozen = kept.freeze(changed)

    assert frozen.primary(changed.settings.study.hypotheses) == []


def test_a_plan_made_after_the_first_run_announces_nothing(kept: Kept) -> None:
    kept.begin(draft())

    assert kept.freeze(draft()).hypotheses == ()


def test_another_protocol_is_announced_for_itself(kept: Kept) -> None:
    kept.freeze(draft())
    kept.begin(draft())

    other = kept.freeze(draft(claim("other"), learning_rates=[0.01]))

    assert names(other) == ["other"]


def test_a_panel_that_joins_later_brings_nothing_announced(kept: Kept) -> None:
    kept.freeze(draft())
    kept.begin(draft())
    wider = draft(
        claim("first"), claim("second", panel="reverse"), panels=("shift", "reverse"), seeds=4
    )

    assert names(kept.freeze(wider)) == ["first"]


def test_a_call_with_fewer_seeds_than_announced_decides_nothing(kept: Kept) -> None:
    kept.freeze(draft())

    assert kept.freeze(draft(seeds=2)).hypotheses == ()


def test_the_protocol_names_what_decides() -> None:
    protocol = protocol_of(draft())

    assert protocol["seeds"] == 4
    assert protocol["hypotheses"][0]["smallest_effect"] == 0.1
    assert protocol["hypotheses"][0]["lengths"] == [16]
    assert protocol["tried"] == [{"training.learning_rate": 1e-3}]


def test_at_most_six_hypotheses_are_primary_and_the_rest_is_explored(messages: Messages) -> None:
    seven = [claim(f"number {number}") for number in range(7)]
    with messages.raises(ConfigError):
        draft(*seven)

    made = draft(*seven[:6], explored=seven[6:])

    assert [one.name for one in made.settings.study.claims()][-1] == "number 6"


def test_a_setting_said_with_its_default_makes_no_other_protocol() -> None:
    said = protocol_of(draft(tie=0.01, tuning_seeds=1))
    assert said == protocol_of(draft())
    assert protocol_of(draft(tie=0.02))["frame"] != said["frame"]


def test_tasks_and_their_options_make_other_panels() -> None:
    marks = {
        protocol_of(draft(panels=(task,)))["panels"]["shift"]
        for task in ({"name": "shift", "k": 1}, {"name": "shift", "k": 2})
    }
    assert len(marks) == 2


def test_a_call_for_a_part_of_the_arms_or_panels_keeps_the_family_whole(kept: Kept) -> None:
    claims = claim("first"), claim("second", arm="alibi"), claim("third", panel="reverse")
    both, every = ("shift", "reverse"), ["rope", "none", "alibi"]
    assert kept.freeze(draft(*claims, panels=both, arms=every)).family == 3
    kept.begin(draft(*claims, panels=both, arms=every))

    fewer_arms = kept.freeze(draft(*claims, panels=both))
    fewer_panels = kept.freeze(draft(claims[0], claims[1], arms=every))
    fewer_claims = kept.freeze(draft(claims[0], panels=both, arms=every))

    assert {one.family for one in (fewer_arms, fewer_panels, fewer_claims)} == {3}
    assert names(fewer_panels) == ["first", "second"]


def test_a_claim_about_an_arm_that_joins_later_was_not_announced(kept: Kept) -> None:
    claims = claim("first"), claim("second", arm="alibi")
    kept.freeze(draft(*claims))
    kept.begin(draft(*claims))

    later = kept.freeze(draft(*claims, arms=["rope", "none", "alibi"]))

    assert (names(later), later.family) == (["first"], 1)
