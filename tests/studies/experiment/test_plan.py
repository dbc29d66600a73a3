"""Plans: which runs a study is made of, and what identifies a run."""

from typing import Any

import pytest

from registry import ConfigError, positions, register
from studies.experiment.contrasts import asked
from studies.experiment.draft import Draft
from studies.experiment.overrides import gather
from studies.experiment.resolve import resolve
from studies.extrapolation import QUICK, STUDY
from studies.training.settings import check_run
from tests.messages import Messages
from tests.studies.made_up import check_draft
from variants.positions import Position


def draft(*assignments: str) -> Draft:
    return Draft(STUDY, gather(QUICK, None, assignments))


def position_of(made: Draft, cell: Any) -> dict[str, Any]:
    return made.config(cell).plain()["encoder"]["position"]


def everything(made: Draft) -> list[Any]:
    plan = resolve(made)
    first = plan.protocol.tried[0]
    cells = plan.cells()
    return [run for cell in cells for run in (*plan.tuning(cell), *plan.confirming(cell, first))]


def identities(*assignments: str) -> list[str]:
    """Identities of a plan of two arms and one task, for speed."""
    brief = ("study.arms=[rope, none]", "task=shift")
    return [run.identity for run in everything(draft(*brief, *assignments))]


def test_quick_is_the_protocol_that_its_text_promises() -> None:
    made = draft()
    runs = everything(made)

    assert len(runs) == 2 * 6 * (3 + 8)
    assert {(run.task, run.steps) for run in runs} == {("shift", 400), ("nearest_marked", 500)}
    assert sorted({run.config["training"]["learning_rate"] for run in runs}) == [1e-3, 3e-3, 1e-2]
    config = runs[0].config
    assert config["training"] | {"steps": 0} == {
        "steps": 0, "batch_size": 64, "learning_rate": 1e-3, "weight_decay": 0.01, "clip_norm": 1.0,
        "schedule": "linear", "warmup_steps": 50, "final_rate": 0.1, "train_lengths": [2, 16],
        "dtype": "float32", "examples": "infinite", "lengths_per_batch": 1, "until": None,
    }  # fmt: skip
    assert config["evaluation"]["test_lengths"] == [16, 17, 18, 20, 24, 32, 64, 128]
    encoder = config["encoder"]
    assert (encoder["d_model"], encoder["n_heads"], encoder["n_layers"]) == (32, 4, 2)
    assert encoder["feedforward"] == {"name": "gelu", "d_ff": 128}
    assert encoder["norm_placement"] == {"name": "pre"}
    assert encoder["initializer"] == {"name": "torch_default"}
    assert encoder["embedding_scale"] is False


def test_arms_differ_in_their_position_and_in_nothing_else() -> None:
    made = draft()
    configs = [made.config(cell).model_dump() for cell in made.cells() if cell.task == "shift"]

    names = {config["encoder"].pop("position")["name"] for config in configs}

    assert names == {"none", "sinusoidal", "learned", "rope", "alibi", "t5_bias"}
    assert all(config == configs[0] for config in configs)


def test_a_learned_table_gets_a_row_for_every_tested_index() -> None:
    made = draft("evaluation.test_lengths=[16, 300]")
    [cell] = [cell for cell in made.cells() if (cell.arm, cell.task) == ("learned", "shift")]

    assert position_of(made, cell)["max_length"] == 300


def test_a_learned_table_has_rows_for_empty_tokens_too() -> None:
    made = draft("evaluation.test_lengths=[16, 30]", "task=duplicate", "study.arms=[learned]")

    assert position_of(made, made.cells()[0])["max_length"] == 90


def test_the_task_says_where_it_is_read_and_how_many_logits_a_place_needs() -> None:
    def encoder(task: str) -> Any:
        made = draft(f"task={task}")
        return made.config(made.cells()[0]).encoder

    before = encoder("{name: even_pairs, answer_at: prepended}")
    assert (before.readout.name, before.vocab_size, before.n_classes) == ("first", 4, 2)
    behind = encoder("{name: even_pairs, answer_at: last}")
    assert (behind.readout.name, behind.vocab_size, behind.n_classes) == ("last", 3, 2)
    several = encoder("{name: multi_shift, offsets: 3, alphabet: 5}")
    assert (several.readout.name, several.vocab_size, several.n_classes) == ("tokens", 6, 15)


@pytest.mark.parametrize("mask", ["full", "prefix", "causal | window", "{name: window, radius: 2}"])
def test_a_text_with_its_answers_needs_a_mask_that_does_not_look_ahead(
    messages: Messages, mask: str
) -> None:
    mask = {
        "prefix": "{name: prefix, length: 3}",
        "causal | window": "causal | window(radius=1)",
    }.get(mask, mask)
    with messages.raises(ConfigError):
        check_draft(draft("task=unique_copy", f"encoder.mask={mask}"))


@pytest.mark.parametrize("mask", ["causal", "causal & window(radius=3)"])
def test_a_text_with_its_answers_is_fine_under_a_causal_mask(mask: str) -> None:
    check_draft(draft("task={name: causal_copy, alphabet: 5}", f"encoder.mask={mask}"))


def test_lengths_beyond_the_longest_of_a_task_are_refused(messages: Messages) -> None:
    brief = ("task={name: unique_copy, alphabet: 20}", "encoder.mask=causal")
    with messages.raises(ConfigError):
        check_draft(draft(*brief, "evaluation.test_lengths=[16, 24]"))


def test_tuning_and_confirming_use_different_seeds() -> None:
    made = resolve(draft("study.arms=[none]", "task=shift"))
    [cell] = made.cells()

    tuned = {run.seed for run in made.tuning(cell)}
    confirmed = {run.seed for run in made.confirming(cell, made.protocol.tried[0])}

    assert confirmed == set(range(8))
    assert tuned.isdisjoint(confirmed)


def test_one_learning_rate_leaves_nothing_to_tune() -> None:
    made = resolve(draft("study.learning_rates=[0.01]"))

    assert [run for cell in made.cells() for run in made.tuning(cell)] == []


def test_every_run_has_an_identity_of_its_own_and_keeps_it() -> None:
    assert len(set(identities())) == 2 * (3 + 8)
    assert identities() == identities()


def test_a_new_arm_leaves_the_identity_of_the_others() -> None:
    assert set(identities()) < set(identities("study.arms=[rope, none, alibi]"))


def test_a_value_equal_to_its_default_changes_no_identity() -> None:
    assert identities("training.dtype=float32", "encoder.norm.eps=1e-5") == identities()


@pytest.mark.parametrize(
    "assignment",
    [
        "encoder.n_heads=2",
        "encoder.norm.eps=1e-6",
        "training.steps=601",
        "training.weight_decay=0.02",
        "evaluation.examples=511",
        "study.seed=1",
        "task={name: shift, k: 2}",
    ],
)
def test_whatever_the_numbers_depend_on_changes_every_identity(assignment: str) -> None:
    assert set(identities(assignment)).isdisjoint(identities())


def test_a_stored_config_is_the_config_again() -> None:
    made = draft("study.seeds=1", "study.learning_rates=[0.01]")
    for run in everything(made):
        assert check_run(run.config).plain() == run.config


def test_a_changed_variant_of_the_user_is_another_run() -> None:
    def identity(width: int) -> str:
        namespace: dict[str, Any] = {"Position": Position, "__name__": "my_variants"}
        exec(
            f"class Mine(Position):\n    name = 'mine'\n    def width(self): return {width}",
            namespace,
        )
        register(namespace["Mine"])
        return identities("study.arms=[mine]")[0]

    try:
        assert identity(1) == identity(1)
        assert identity(1) != identity(2)
    finally:
        positions.discard("mine")


@pytest.mark.parametrize(
    ("assignment", "told"),
    [
        ("study.arms=[roep]", "study.arms (roep): no position is named 'roep'; did you mean"),
        ("study.arms=[rope, rope]", "study.arms: each is given once; got 'rope' 2 times"),
        ("encoder.position=rope", "name them by --arms"),
        ("encoder.vocab_size=9", "encoder.vocab_size: the task decides this key"),
        ("encoder.d_modle=9", "encoder.d_modle: unknown key 'd_modle'; did you mean 'd_model'?"),
        ("encoder.n_heads=5", "encoder.n_heads: every head needs the same width"),
        ("encoder.n_heads=32", "study.arms (rope): rope turns channels in pairs"),
        ("evaluation.test_lengths=[3, 16]", "alphabet=8) has answers from length 4 on; got 3"),
        ("training.train_lengths=[2, 3]", "training.train_lengths: shift"),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_done_is_refused(assignment: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_draft(draft(assignment))

    assert told in str(caught.value)


def test_the_budgets_can_all_be_planned_and_ask_every_hypothesis() -> None:
    for budget in STUDY.budgets.values():
        made = Draft(STUDY, gather(budget.settings))
        check_draft(made)
        assert asked(made) == list(made.settings.study.hypotheses)


def of_panels(*panels: dict[str, Any], **study: Any) -> Draft:
    settings = {"arms": ["rope", "none"], "panels": list(panels), **study}
    return Draft(STUDY, gather({**QUICK, "study": settings}))


def test_a_panel_has_the_arms_that_it_is_for() -> None:
    made = of_panels({"task": "shift"}, {"task": "reverse", "arms": ["none"]})
    check_draft(made)
    assert [(cell.task, cell.arm) for cell in made.cells()] == [
        ("shift", "rope"),
        ("shift", "none"),
        ("reverse", "none"),
    ]


def test_an_arm_of_a_panel_that_the_study_does_not_have_is_refused(messages: Messages) -> None:
    made = of_panels({"task": "shift", "arms": ["rope", "nome"]})
    with messages.raises(ConfigError):
        check_draft(made)


def test_a_claim_about_an_arm_that_is_not_on_its_panel_is_not_asked() -> None:
    claim = {"name": "c", "claim": "c", "arm": "rope", "against": "none", "lengths": [16]}
    panels = {"task": "shift"}, {"task": "reverse", "arms": ["none"]}
    for panel, many in (("shift", 1), ("reverse", 0)):
        made = of_panels(*panels, hypotheses=[{**claim, "panel": panel}])
        assert len(asked(made)) == many


def test_what_is_measured_without_training_is_not_tuned() -> None:
    measured = {"label": "rank", "training": {"steps": 0}, "perform": {
        "name": "studies.measurements.rank_bottleneck:measure", "width": 2}}  # fmt: skip
    made = resolve(of_panels({"task": "shift"}, measured, learning_rates=[1e-3, 3e-3]))
    tuned = {cell.task: len(list(made.tuning(cell))) for cell in made.cells()}
    assert tuned == {"shift": 2, "rank": 0}


@pytest.mark.parametrize("pad_id", [None, 1])
def test_padded_batches_need_an_encoder_that_knows_padding(
    messages: Messages, pad_id: int | None
) -> None:
    words = ["training.lengths_per_batch=8", f"encoder.pad_id={'null' if pad_id is None else 1}"]

    with messages.raises(ConfigError):
        check_draft(draft("study.arms=[rope, none]", "task=shift", *words))

    check_draft(draft("study.arms=[rope, none]", "task=shift", words[0], "encoder.pad_id=0"))
