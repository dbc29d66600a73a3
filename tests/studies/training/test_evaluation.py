"""Evaluation, against numbers counted by hand."""

import math
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from registry import build_encoder
from store.metrics import SCORED
from studies.scoring import FixedSets, Measured, logits_per_answer
from studies.seeds import Seeds
from studies.tasks.first_last_match import FirstLastMatch
from studies.tasks.multi_shift import MultiShift
from studies.tasks.shift import Shift
from studies.tasks.task import Task
from studies.training.evaluation import MEASURES, evaluate, skill_of, validation_lengths
from tests.messages import Messages
from variants.positions import BeyondTableError

CPU = torch.device("cpu")


class Says(nn.Module):
    """Answers with what a function of the tokens says, sure of it."""

    def __init__(self, answer, n_classes: int) -> None:
        super().__init__()
        self.answer, self.n_classes = answer, n_classes

    def forward(self, tokens: Tensor) -> SimpleNamespace:
        answers = self.answer(tokens).clamp(min=0)
        return SimpleNamespace(logits=10.0 * F.one_hot(answers, self.n_classes).float())


def measure(
    model: nn.Module, task: Task, length: int = 6, batch_size: int = 100
) -> dict[str, Measured]:
    found = evaluate(model, FixedSets(task, "test", Seeds(0, 0), 100, batch_size), [length], CPU)
    return {one.metric: one for one in found}


def value(found: dict[str, Measured], metric: str) -> float:
    measured = found[metric].value
    assert measured is not None
    return measured


@pytest.mark.parametrize("task", [Shift(k=2, alphabet=4), FirstLastMatch(alphabet=4)])
def test_the_exact_solver_scores_one(task: Task) -> None:
    found = measure(Says(task.solve, task.n_classes), task)

    assert found["accuracy"].value == found["exact"].value == found["skill"].value == 1.0
    assert value(found, "nll") < 1e-3


def test_only_scored_answers_count() -> None:
    task = Shift(k=2, alphabet=4)

    found = measure(Says(task.solve, 4), task, length=6)

    assert found["accuracy"].n == found["accuracy"].correct == 100 * 4
    assert found["exact"].n == 100


def test_one_wrong_answer_a_sequence_leaves_no_exact_match() -> None:
    task = Shift(k=2, alphabet=4)

    def almost(tokens: Tensor) -> Tensor:
        answers = task.solve(tokens).clone()
        answers[:, -1] = (answers[:, -1] + 1) % 4
        return answers

    found = measure(Says(almost, 4), task, length=6)

    assert found["accuracy"].value == pytest.approx(3 / 4)
    assert found["exact"].value == 0


def test_a_blind_guess_has_about_zero_skill() -> None:
    task = FirstLastMatch(alphabet=4)

    found = measure(Says(lambda tokens: torch.zeros(len(tokens), dtype=torch.long), 2), task, 4)

    floor = task.floors(4).highest
    accuracy = value(found, "accuracy")
    assert found["skill"].value == pytest.approx((accuracy - floor) / (1 - floor))
    assert accuracy == pytest.approx(0.5, abs=0.2)


def test_several_answers_a_place_are_counted_one_by_one() -> None:
    task = MultiShift(offsets=2, alphabet=4)

    def answers(tokens: Tensor) -> Tensor:
        solved = task.solve(tokens).clone()
        solved[:, :, 1] = (solved[:, :, 1] + 1) % 4
        return solved

    class Flat(Says):
        def forward(self, tokens: Tensor) -> SimpleNamespace:
            logits = super().forward(tokens).logits
            return SimpleNamespace(logits=rearrange(logits, "b t answer c -> b t (answer c)"))

    right, half = measure(Flat(task.solve, 4), task), measure(Flat(answers, 4), task)

    assert right["accuracy"].n == 100 * (5 + 4)
    assert right["accuracy"].value == right["exact"].value == 1
    assert half["accuracy"].value == pytest.approx(5 / 9)
    assert half["exact"].value == 0


@pytest.mark.parametrize(
    ("logits", "targets"),
    [
        (
            (4, 7, 2),
            (4,),
        ),
        (
            (4, 2),
            (4, 7),
        ),
        ((4, 6, 2), (4, 7)),
    ],
)
def test_a_model_that_answers_elsewhere_than_its_task_asks_is_told(
    messages: Messages, logits: tuple[int, ...], targets: tuple[int, ...]
) -> None:
    with messages.raises(ValueError):
        logits_per_answer(torch.zeros(logits), torch.zeros(targets, dtype=torch.long))


def test_skill_is_zero_at_the_floor_and_one_at_perfection() -> None:
    assert skill_of(0.25, 0.25) == 0
    assert skill_of(1.0, 0.25) == 1
    assert skill_of(0.1, 0.25) == pytest.approx(-0.2)


def test_results_do_not_depend_on_the_batch_size() -> None:
    task = Shift(k=1, alphabet=3)
    torch.manual_seed(0)
    table = torch.randn(4, 3)

    class Table(nn.Module):
        def forward(self, tokens: Tensor) -> SimpleNamespace:
            return SimpleNamespace(logits=table[tokens])

    whole = measure(Table(), task, batch_size=100)
    parts = measure(Table(), task, batch_size=7)

    for metric in ("accuracy", "exact", "skill"):
        assert whole[metric] == parts[metric]
    assert whole["nll"].value == pytest.approx(parts["nll"].value, rel=1e-9)


def test_the_nll_is_a_mean_over_answers_in_nats() -> None:
    task = Shift(k=1, alphabet=4)

    class Flat(nn.Module):
        def forward(self, tokens: Tensor) -> SimpleNamespace:
            return SimpleNamespace(logits=torch.zeros(*tokens.shape, 4))

    assert measure(Flat(), task)["nll"].value == pytest.approx(math.log(4))


def test_what_is_measured_is_what_a_hypothesis_may_name() -> None:
    task = Shift(k=1, alphabet=4)

    assert sorted(measure(Says(task.solve, 4), task)) == sorted(SCORED)


def test_the_set_is_fixed_by_replicate_split_and_length() -> None:
    seen: list[Tensor] = []

    def remember(tokens: Tensor) -> Tensor:
        seen.append(tokens)
        return torch.zeros_like(tokens)

    task, model = Shift(k=1, alphabet=4), Says(remember, 4)
    for split, replicate in (("test", 0), ("test", 0), ("validation", 0), ("test", 1)):
        evaluate(model, FixedSets(task, split, Seeds(0, replicate), 50, 50), [6], CPU)

    assert torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[0], seen[2])
    assert not torch.equal(seen[0], seen[3])


def test_a_length_that_the_model_refuses_is_measured_as_nothing() -> None:
    class Short(nn.Module):
        def forward(self, tokens: Tensor) -> SimpleNamespace:
            if tokens.shape[1] > 5:
                raise BeyondTableError("too long")
            return SimpleNamespace(logits=torch.zeros(*tokens.shape, 4))

    task = Shift(k=1, alphabet=4)
    found = evaluate(Short(), FixedSets(task, "test", Seeds(0, 0), 10, 10), [5, 6], CPU)

    assert all(one.value is not None for one in found if one.length == 5)
    assert [(one.value, one.n, one.correct) for one in found if one.length == 6] == [
        (None, 0, None)
    ] * len(MEASURES)


def test_longer_sequences_are_scored_whole() -> None:
    task = Shift(k=1, alphabet=4)
    sizes = {"d_model": 8, "n_heads": 2, "n_layers": 1, "vocab_size": 5, "n_classes": 4}
    model = build_encoder({**sizes, "position": "rope", "mask": "causal"}, seed=0)

    found = evaluate(model, FixedSets(task, "test", Seeds(0, 0), 10, 4), [16, 32, 64], CPU)

    assert [one.n for one in found if one.metric == "accuracy"] == [150, 310, 630]
    assert [one.n for one in found if one.metric == "exact"] == [10, 10, 10]


@pytest.mark.parametrize(
    ("shortest", "longest", "expected"),
    [(2, 16, [2, 4, 6, 8, 10, 12, 14, 16]), (4, 6, [4, 5, 6]), (7, 7, [7])],
)
def test_validation_covers_the_trained_lengths(
    shortest: int, longest: int, expected: list[int]
) -> None:
    assert validation_lengths(shortest, longest) == expected


def test_evaluation_draws_nothing_from_dropout() -> None:
    class Dropping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = nn.Dropout(0.5)

        def forward(self, tokens: Tensor) -> SimpleNamespace:
            return SimpleNamespace(logits=self.drop(torch.ones(*tokens.shape, 4)))

    found = measure(Dropping().train(), Shift(k=1, alphabet=4))

    assert found["nll"].value == pytest.approx(math.log(4))


class Wavers(nn.Module):
    """Gives the right answer a chance that it draws anew at each call; its logits are shifted."""

    draws = True

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.task, self.drawn = task, list[float]()

    def forward(self, tokens: Tensor, generator: torch.Generator | None = None) -> SimpleNamespace:
        chance = torch.rand((), generator=generator).item() * 0.9 + 0.05
        self.drawn.append(chance)
        answers = self.task.solve(tokens).clamp(min=0)
        right = F.one_hot(answers, self.task.n_classes).bool()
        logits = torch.where(right, chance, (1 - chance) / (self.task.n_classes - 1)).log() + 3
        flat = "batch seq answers classes -> batch seq (answers classes)"
        return SimpleNamespace(logits=rearrange(logits, flat) if logits.ndim == 4 else logits)


@pytest.mark.parametrize("task", [Shift(k=1, alphabet=4), MultiShift(), FirstLastMatch(alphabet=4)])
def test_chances_not_logits_are_averaged_over_draws_of_positions(task: Task) -> None:
    model = Wavers(task)
    found = evaluate(
        model, FixedSets(task, "test", Seeds(0, 0), 10, 10), [6], CPU, position_draws=5
    )

    assert len(model.drawn) == len(set(model.drawn)) == 5
    nll = next(one.value for one in found if one.metric == "nll")
    assert nll == pytest.approx(-math.log(sum(model.drawn) / 5), abs=1e-6)


def test_each_batch_draws_anew_and_the_replicate_split_and_length_decide() -> None:
    task = Shift(k=1, alphabet=4)

    def drawn(split: str, replicate: int, draws: int = 2) -> list[float]:
        model = Wavers(task)
        evaluate(
            model,
            FixedSets(task, split, Seeds(0, replicate), 20, 10),
            [4, 5],
            CPU,
            position_draws=draws,
        )
        return model.drawn

    first = drawn("test", 0)
    assert len(set(first)) == 8  # two lengths, two batches, two draws
    assert drawn("test", 0) == first
    assert drawn("test", 0, draws=1) == [first[0], first[1], first[4], first[5]]
    assert not set(first) & {*drawn("validation", 0), *drawn("test", 1)}


def test_a_model_that_draws_nothing_is_asked_once() -> None:
    seen: list[Tensor] = []

    def remember(tokens: Tensor) -> Tensor:
        seen.append(tokens)
        return torch.zeros_like(tokens)

    task = Shift(k=1, alphabet=4)
    evaluate(
        Says(remember, 4), FixedSets(task, "test", Seeds(0, 0), 10, 10), [6], CPU, position_draws=5
    )
    assert len(seen) == 1


@pytest.mark.parametrize("length", [4, 6])
def test_the_floor_is_stored_beside_the_accuracy(length: int) -> None:
    task = FirstLastMatch(alphabet=4)
    found = measure(Says(task.solve, 2), task, length)
    assert value(found, "floor") == task.floors(length).highest
    assert found["floor"].n == found["accuracy"].n
