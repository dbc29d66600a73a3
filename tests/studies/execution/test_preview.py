"""What a study says of itself, and what it would do, without doing it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from store.ledger import Ledger
from studies.execution.preview import describe, preview
from studies.execution.run_times import Estimate, RunTime, run_times
from studies.execution.scheduler import Scheduler
from studies.execution.trials import Trials
from studies.experiment.draft import Draft
from studies.experiment.resolve import resolve
from studies.report.findings import differences
from studies.training.settings import Until
from tests.studies.made_up import CLAIM, FAR, NEAR, MadeUp, draft
from variants.positions.rope import RoPE

NOWHERE = "sqlite:////nowhere/at/all.db"

DRY = "Dry run: nothing was executed."


def described(made: Draft, capsys: pytest.CaptureFixture[str]) -> str:
    describe(made)
    return capsys.readouterr().out


def planned(
    made: Draft, capsys: pytest.CaptureFixture[str], storage: str = NOWHERE, workers: int = 2
) -> list[str]:
    preview(made, storage, workers)
    return capsys.readouterr().out.splitlines()


def test_a_description_tells_arms_claims_protocol_and_costs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = described(draft(5, learning_rates=[1e-3, 3e-3]), capsys)

    assert "The arms differ in encoder.position." in told
    assert (
        "  further: Rope carries further.\n    rope > learned: skill on shift at length 32; δ"
        in (told)
    )
    assert "every arm tries learning_rate 0.001; learning_rate 0.003 on 1 seed(s)" in told
    assert "lowest mean validation nll at trained lengths; as good is within 0.01 nats" in told
    assert "Confirming: 5 fresh seeds per arm" in told
    assert "What changed between arms on shift:" in told


def test_a_hypothesis_that_a_call_cannot_ask_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    told = described(draft(5, only=["rope"]), capsys)

    assert "not asked here: no arm 'learned' in this call" in told


def test_a_plan_says_which_claims_a_choice_of_arms_leaves_open(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = "cannot be judged: further (no arm 'learned' in this call; its arms: rope)"

    assert told in planned(draft(5, only=["rope"]), capsys)
    assert not any("judged" in line for line in planned(draft(5), capsys))


def test_a_plan_says_when_its_seeds_are_too_few_to_decide(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Six seeds are dealt to two arms in 20 ways: p can be 1/20 = .05, which decides one claim and
    # not two; eight seeds in 70 ways.
    claims = [CLAIM, {**CLAIM, "name": "again"}]

    one, two = (
        [line for line in planned(draft(3, hypotheses=family), capsys) if "too few" in line]
        for family in (claims[:1], claims)
    )

    assert one == []
    assert two == [
        "too few seeds to judge further, again: 3 an arm, where a family of 2 needs at least 4"
    ]


def test_a_plan_for_some_arms_counts_the_family_that_was_frozen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claims = [CLAIM, {**CLAIM, "name": "other", "arm": "alibi"}]
    every = draft(3, hypotheses=claims, arms=["rope", "learned", "alibi"])
    made = MadeUp(tmp_path, every, dict.fromkeys(("rope", "learned", "alibi"), FAR[:3]))

    part = planned(draft(3, hypotheses=claims), capsys, made.url)

    assert "too few seeds to judge further: 3 an arm, where a family of 2 needs at least 4" in part


def test_a_plan_says_how_long_a_criterion_of_fit_may_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = draft(5)
    training = made.settings.training.model_copy(update={"until": Until(cap=2.5)})
    made = replace(made, settings=made.settings.model_copy(update={"training": training}))

    assert " of 10 steps (until it fits: 25), about" in planned(made, capsys)[1]


def test_what_differs_beside_the_variable_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    arms = {"rope": {"encoder.position": "rope"}, "learned": {
        "encoder": {"position": "learned", "n_layers": 2}
    }}  # fmt: skip
    told = described(draft(5, arms=arms, also_differs=["encoder.n_layers"]), capsys)

    assert "also differs: encoder.n_layers: 1 against 2" in told


def test_a_plan_counts_runs_and_says_that_nothing_was_done(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = planned(draft(5, learning_rates=[1e-3, 3e-3]), capsys)

    assert lines[0] == (
        "made_up: 5 confirming seeds an arm; tries learning_rate 0.001; learning_rate 0.003"
    )
    assert "2 tuning + 5 confirming runs of 10 steps, about " in lines[1]
    assert "stored" not in lines[1]
    assert lines[-1].startswith("14 runs: 0 stored, 14 to be done in about ")
    assert lines[-1].endswith(f" with 2 workers. {DRY}")


def test_a_plan_says_what_is_stored_and_what_failed_is_still_to_be_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = MadeUp(tmp_path, draft(5), {"rope": [*FAR[:3], "failed", "diverged"], "learned": NEAR})

    lines = planned(made.draft, capsys, made.url)

    assert lines[1].endswith("; 4 stored")
    assert lines[2].endswith("; 5 stored")
    assert lines[-1].startswith("10 runs: 9 stored, 1 to be done in about ")


def test_what_is_done_needs_no_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = MadeUp(tmp_path, draft(5), {"rope": FAR, "learned": NEAR})

    last = planned(made.draft, capsys, made.url)[-1]

    assert last == f"10 runs: 10 stored, 0 to be done. {DRY}"


def test_a_plan_holds_the_table_of_costs(capsys: pytest.CaptureFixture[str]) -> None:
    lines = planned(draft(5, hypotheses=[]), capsys)

    place = lines.index("What changed between arms on shift:")
    assert [line.split()[0] for line in lines[place + 2 : place + 4]] == ["rope", "learned"]


def test_a_part_that_raises_is_told_by_arm_and_place_and_others_are_planned(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(self: RoPE, q: Tensor, k: Tensor, *indices: Tensor) -> tuple[Tensor, Tensor]:
        raise RuntimeError("heads of 7 cannot turn")

    monkeypatch.setattr(RoPE, "rotate", half)
    made = draft(5)
    lines = planned(made, capsys)

    assert lines[1].endswith("5 confirming runs of 10 steps")
    assert ", about " in lines[2]
    [told] = [line for line in lines if line.startswith("cannot run: rope on shift (")]
    assert "RuntimeError: heads of 7 cannot turn (" in told
    assert f"{__file__}:" in told
    assert "site-packages/torch" not in told
    assert lines[-1].endswith(f"5 whose time is known once one is stored. {DRY}")
    assert "cannot run: rope on shift (" in described(made, capsys)
    rows = dict(differences(resolve(made)))
    assert rows["FLOPs per token"]["rope"] == "n/a"
    assert rows["parameters"]["rope"] != "n/a"


def test_lengths_that_a_model_refuses_take_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    arms = {"short": {"encoder.position": {"name": "learned", "max_length": 16}}}
    lines = planned(draft(5, arms=arms, hypotheses=[]), capsys)

    assert ", about " in lines[1]


def test_runs_that_do_not_train_have_no_time_and_no_costs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from studies.attention_numerics import STUDY
    from studies.experiment.overrides import gather

    made = Draft(STUDY, gather(STUDY.budgets["smoke"].settings))

    lines = planned(made, capsys)

    told = f" to be done; how long runs take is known once one is stored. {DRY}"
    assert lines[-1].endswith(told)
    assert not any("about" in line or "FLOPs" in line or not line for line in lines)


def test_runs_that_do_not_train_take_as_long_as_stored_ones_of_their_arm_or_else_panel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from studies.attention_numerics import STUDY
    from studies.experiment.overrides import gather

    made = Draft(
        STUDY, gather(STUDY.budgets["smoke"].settings, None, [], {"only": ["sdpa", "chunked"]})
    )
    url = f"sqlite:///{tmp_path / 'numerics.db'}"
    scheduler = Scheduler(resolve(made), Ledger.create(url), Trials(url))
    scheduler.advance()
    for panel, seconds in (("float32", 2.0), ("float32", 6.0), ("float16", 10.0)):
        claim = scheduler.ledger.claim("w", scheduler.confirming[made.cell(panel, "sdpa")])
        assert claim is not None
        scheduler.ledger.finish(claim, "done", cpu_seconds=seconds)

    took = run_times(made, url)
    assert took[made.cell("float32", "sdpa")] == RunTime(4.0, 2)
    assert took[made.cell("float32", "chunked")] == RunTime(4.0, 2)
    assert took[made.cell("float16", "sdpa")] == RunTime(10.0, 1)
    assert took[made.cell("bfloat16", "sdpa")] == RunTime(6.0, 3)
    assert set(run_times(replace(made, budget="quick"), url).values()) == {None}
    lines = planned(made, capsys, url)
    assert lines[1].endswith("  2 confirming runs, about 4 s each (mean of 2 stored); 2 stored")
    assert " to be done in about " in lines[-1]


def test_columns_are_as_wide_as_the_longest_name(capsys: pytest.CaptureFixture[str]) -> None:
    names = {"rope": {"encoder.position": "rope"}, "a name of more than twenty": {
        "encoder.position": "learned"
    }}  # fmt: skip
    lines = planned(draft(5, arms=names, hypotheses=[]), capsys)

    places = [line.index("5 confirming runs") for line in lines[1:3]]
    assert places == [len("  shift  a name of more than twenty  ")] * 2


def test_where_arms_differ_in_the_task_the_protocol_tells_every_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arms = {"near": {"task.k": 1}, "far": {"task.k": 3}}
    told = described(draft(5, arms=arms, hypotheses=[]), capsys)

    assert "shift(k=1, alphabet=3) or shift(k=3, alphabet=3), 10 steps" in told


def test_models_of_one_make_are_timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[Any] = []

    def speeds(config: Any) -> tuple[float, float]:
        timed.append(config)
        return 2.0, 3.0

    monkeypatch.setattr("studies.execution.run_times._timed", speeds)
    estimate, made = Estimate(), draft(5)
    rope, learned = (made.config(cell) for cell in made.cells())

    seconds = [estimate.seconds_of(one) for one in (rope, learned, rope)]

    assert timed == [rope, learned]
    # 10 steps of 64 sequences of 9 tokens in the mean; 16 sequences at lengths 16 and 32.
    assert seconds == [2.0 * 10 * 64 * 9 + 3.0 * 16 * (16 + 32)] * 3


def test_an_interaction_is_described_as_a_difference_of_differences(
    capsys: pytest.CaptureFixture[str],
) -> None:
    factors = {"encoder.position": ["rope", "none"], "encoder.norm_placement": ["pre", "post"]}
    pairs = {"arm": "rope × pre", "against": "none × pre", "than": ["rope × post", "none × post"]}
    claim = {**CLAIM, **pairs}
    told = described(draft(5, factors=factors, hypotheses=[claim]), capsys)

    assert "    (rope × pre − none × pre) > (rope × post − none × post): skill on shift" in told


def test_a_search_says_how_many_arms_it_adds(capsys: pytest.CaptureFixture[str]) -> None:
    search = {"space": {"encoder.n_layers": [1, 2]}, "objectives": {"skill": "maximize"}}
    made = draft(2, search={**search, "generations": 3, "size": 4})
    assert "then 3 times 4 arms that the search proposes" in planned(made, capsys)


def test_arms_that_are_done_again_count_as_nothing_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = MadeUp(tmp_path, draft(5), {"rope": FAR, "learned": NEAR})

    preview(made.draft, made.url, 2, ["rope"])

    lines = capsys.readouterr().out.splitlines()
    assert "stored" not in lines[1]
    assert lines[2].endswith("; 5 stored")
    assert lines[-1].startswith("10 runs: 5 stored, 5 to be done in about ")


def raises(vocab_size: int, n_classes: int) -> None:
    raise RuntimeError("I am no model")


def nothing(vocab_size: int, n_classes: int) -> None:
    return None


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("raises", "what builds this model raised RuntimeError: I am no model ("),
        ("nothing", ":nothing builds a torch.nn.Module; got None"),
    ],
)
def test_a_function_that_builds_no_model_is_told_and_other_arms_are_planned(
    function: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    own = {"model": f"{__file__}:{function}"}
    made = draft(5, arms={"rope": {"encoder.position": "rope"}, "own": own}, hypotheses=[])

    lines = planned(made, capsys)

    assert ", about " in lines[1]
    [told] = [line for line in lines if line.startswith("cannot run: own on shift (")]
    assert said in told
    assert [line.split()[:3] for line in lines if line.startswith("  own  ")] == [
        ["own", "n/a", "n/a"]
    ]
