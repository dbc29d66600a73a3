"""Effects of cuts, on models of which is known where they look and what carries the answer."""

from typing import Any

import pytest
import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor

from registry import build_encoder, isolated, register
from studies.links.choices import Choice, choose
from studies.links.cutting import run_cut
from studies.links.effects import Bench, Scope, ask, measure
from studies.tasks.task import Task
from studies.training.outcome import Outcome, Work
from studies.training.settings import check_run, task_of
from variants.positions import Position

CPU = torch.device("cpu")
SHIFT = {"name": "shift", "k": 2, "alphabet": 4}


class LooksTwoBack(Position):
    """Nearly all weight lies on the token two back, whatever the tokens say."""

    name = "looks_two_back"

    def bias(
        self, q_index: Int[Tensor, "#batch query"], k_index: Int[Tensor, "#batch key"]
    ) -> Float[Tensor, "#batch heads query key"]:
        query = rearrange(q_index, "batch query -> batch 1 query 1")
        key = rearrange(k_index, "batch key -> batch 1 1 key")
        return 60.0 * (query - key == 2).float().expand(-1, self.dims.n_heads, -1, -1)


@pytest.fixture(autouse=True)
def _registered() -> Any:
    with isolated():
        register(LooksTwoBack)
        yield


def config(task: Any = SHIFT, **more: Any) -> Any:
    made = task_of(check_run({"task": task}).task)
    sizes = {"vocab_size": made.vocab_size, "n_classes": made.n_classes, "readout": made.readout}
    encoder = {"d_model": 16, "n_heads": 2, "n_layers": 2, "position": "looks_two_back", **sizes}
    return check_run(
        {
            "task": task,
            "encoder": {**encoder, **more},
            "training": {"steps": 0, "train_lengths": [4, 8]},
            "evaluation": {"test_lengths": [8], "examples": 40},
        }
    )


def model_and_task(task: Any = SHIFT, **more: Any) -> tuple[Any, Task]:
    made = config(task, **more)
    return build_encoder(made.encoder, seed=0).eval(), task_of(made.task)


def bench(model: Any, task: Task) -> Bench:
    return Bench(model, ask(task, model, torch.Generator().manual_seed(0), 40, 8))


def run(choice: Choice, **more: Any) -> Outcome:
    return measure(Work(config(**more), 0, CPU), choice)


def value(outcome: Outcome, metric: str, bin: int | None = None) -> float:
    [found] = [
        one.value
        for one in outcome.scores
        if (one.split, one.metric, one.bin) == ("test", metric, bin)
    ]
    assert found is not None
    return found


def test_each_sequence_is_asked_at_a_query_that_needs_something() -> None:
    model, task = model_and_task()
    asked = ask(task, model, torch.Generator().manual_seed(0), 40, 8)
    row = torch.arange(40)
    assert asked.query.min() >= 2
    assert len(asked.query.unique()) == 6
    assert torch.equal(asked.target, asked.tokens[row, asked.query - 2] - 1)
    assert torch.equal(asked.true.long().argmax(-1), asked.query - 2)


def test_a_causal_query_is_allowed_what_lies_before_it() -> None:
    model, task = model_and_task(mask="causal")
    asked = ask(task, model, torch.Generator().manual_seed(0), 40, 8)
    assert torch.equal(asked.allowed.sum(-1), asked.query + 1)


def test_an_answer_for_a_whole_sequence_needs_both_ends() -> None:
    task = {"name": "first_last_match", "answer_at": "prepended"}
    model, made = model_and_task(task)
    asked = ask(made, model, torch.Generator().manual_seed(0), 40, 8)
    assert set(asked.query.tolist()) == {0}
    assert asked.true.tolist() == [[False, True, *[False] * 6, True]] * 40
    assert asked.answers(torch.zeros(40, 2)).shape == (40, 2)


def test_where_all_weight_lies_on_the_true_link_only_that_matters() -> None:
    true, mass, keep = run("true"), run("mass"), run("keep_true")
    assert value(true, "top_is_true") == 1
    assert value(true, "mass") == pytest.approx(1)
    assert value(true, "kl") > 1e-3
    assert value(mass, "kl") == pytest.approx(0, abs=1e-12)
    assert value(mass, "relative_mass") == pytest.approx(0, abs=1e-12)
    assert value(mass, "links") == 7
    assert value(keep, "kl_all") == pytest.approx(0, abs=1e-12)
    assert value(keep, "links") == 7


def test_cutting_nothing_changes_nothing() -> None:
    nothing = run("nothing")
    for suffix in ("", "_all", "_head", "_after"):
        assert value(nothing, f"kl{suffix}") == pytest.approx(0, abs=1e-12)
        assert value(nothing, f"accuracy{suffix}") == value(nothing, "accuracy_uncut")
    assert value(nothing, "links") == 0


def test_every_choice_is_measured_on_the_same_sequences() -> None:
    choices: list[Choice] = ["nothing", "true", "random"]
    assert len({value(run(choice), "accuracy_uncut") for choice in choices}) == 1


def test_the_layer_is_chosen_on_other_sequences_than_those_that_are_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[Tensor] = []

    class Noting(Bench):
        def __init__(self, model: Any, asked: Any) -> None:
            super().__init__(model, asked)
            looked.append(asked.tokens)

    monkeypatch.setattr("studies.links.effects.Bench", Noting)
    run("true")

    aside, cut = looked
    shared = {tuple(one) for one in aside.tolist()} & {tuple(one) for one in cut.tolist()}
    assert len(shared) < len(cut) / 4


def test_doses_count_links_and_come_where_they_mean_something() -> None:
    random = run("random", position="none")
    masses = [value(random, "mass_by_dose", dose) for dose in (1, 2, 4, 8)]
    assert masses == sorted(masses)
    assert masses[0] < 0.2 < masses[2]
    assert "kl_by_dose" not in {one.metric for one in run("true").scores}


def test_the_carrying_layer_and_head_are_those_that_reach_the_answer() -> None:
    """Layer 1 and head 0 of layer 0 are projected to nothing: head 1 of layer 0 is left."""
    model, task = model_and_task()
    first, second = (block.attention.to_model.weight for block in model.blocks)
    with torch.no_grad():
        second.zero_()
        first[:, :8] = 0
    assert bench(model, task).carrying() == Scope((0,), head=1)


def test_the_difference_is_the_one_of_the_formula() -> None:
    model, task = model_and_task()
    made, scope = bench(model, task), Scope((0, 1))
    keys = choose("true", made.rows(scope), torch.Generator())
    logits: Any = run_cut(model, made.asked.tokens, scope.cuts(keys, made.asked, model)).logits
    cut = made.asked.answers(logits)
    chances, after = made.answers.softmax(-1), cut.softmax(-1)
    expected = (chances * (chances / after).log()).sum(-1)
    torch.testing.assert_close(made.cut(keys, scope).kl, expected)


def test_weights_of_a_scope_are_means_over_its_heads_and_layers() -> None:
    model, task = model_and_task(position="rope")
    made = bench(model, task)
    row, query = torch.arange(40), made.asked.query
    one = made.shown[1][row, 1, query].double()
    torch.testing.assert_close(made.rows(Scope((1,), head=1)).weights, one)
    both = sum(layer[row, head, query].double() for layer in made.shown for head in (0, 1))
    torch.testing.assert_close(made.rows(Scope((0, 1))).weights, both / 4)


@pytest.mark.parametrize("task", ["parity", "multi_shift"])
def test_a_task_without_known_links_is_not_applicable(task: str) -> None:
    made = task_of(check_run({"task": task}).task)
    outcome = run("true", task=task, n_classes=made.n_classes * made.answers)
    assert (outcome.status, outcome.scores) == ("not_applicable", [])
    assert task in str(outcome.reason)


def test_a_model_that_is_no_encoder_is_not_applicable() -> None:
    roots = config().plain()
    del roots["encoder"]
    outcome = measure(Work(check_run({**roots, "model": "examples.gru:build"}), 0, CPU), "true")
    assert outcome.status == "not_applicable"
    assert "attention of an encoder" in str(outcome.reason)
