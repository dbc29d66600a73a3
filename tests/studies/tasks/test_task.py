"""What every task promises, and what a user's own task gets for free."""

import subprocess
import sys
from typing import ClassVar

import pytest
import torch
from einops import rearrange
from jaxtyping import Int
from torch import Tensor

from registry.table import TABLES, register
from studies.tasks import Batch, Certificate, Floors, Task, tasks

NAMES = [
    "bucket_sort",
    "duplicate",
    "even_pairs",
    "first_last_match",
    "majority",
    "missing_duplicate",
    "nearest_marked",
    "odds_first",
    "parity",
    "previous_occurrence",
    "reverse",
    "shift",
]
LENGTHS = (4, 5, 17, 64)


def draw(task: Task, seed: int, batch: int = 50, length: int = 12) -> Batch:
    return task.sample(torch.Generator().manual_seed(seed), batch, length)


def test_listing_the_tasks_imports_no_torch() -> None:
    code = "import sys; from studies.tasks import tasks; print(*tasks, 'torch' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == [*NAMES, "False"]


def test_the_table_is_a_kind_like_any_other() -> None:
    assert TABLES["task"] is tasks
    assert tasks.contract is Task
    assert list(tasks) == NAMES
    assert (tasks.plural, bool(tasks.about)) == ("tasks", True)


@pytest.mark.parametrize("name", NAMES)
def test_a_task_declares_itself(name: str) -> None:
    task = tasks[name]()
    assert (task.name, task.pad_id) == (name, 0)
    assert task.readout in ("tokens", "last", "first", "mean")
    assert task.difficulty[-1] == "length"
    assert all(hasattr(task, option) for option in task.difficulty[:-1])


@pytest.mark.parametrize("name", NAMES)
def test_tokens_and_targets_stay_in_their_ranges(name: str) -> None:
    task = tasks[name]()
    drawn = draw(task, seed=0, batch=500, length=13)
    scored = drawn.targets[drawn.targets != -100]
    assert drawn.tokens.dtype == drawn.targets.dtype == torch.long
    assert drawn.tokens.unique().tolist() == list(range(1, task.vocab_size))
    assert scored.unique().tolist() == list(range(task.n_classes))
    assert drawn.tokens.shape == (500, task.pose(drawn.tokens[:, :13]).shape[1])
    assert drawn.targets.shape == (drawn.tokens.shape if task.readout == "tokens" else (500,))
    assert drawn.keep.shape == drawn.tokens.shape
    assert drawn.keep.all()


@pytest.mark.parametrize("name", NAMES)
def test_data_depend_on_the_generator_alone(name: str) -> None:
    task = tasks[name]()
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = draw(task, seed=7)
    task.floors(12)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    second = draw(tasks[name](), seed=7)
    assert torch.equal(first.tokens, second.tokens)
    assert torch.equal(first.targets, second.targets)
    assert not torch.equal(first.tokens, draw(task, seed=8).tokens)


@pytest.mark.parametrize("name", NAMES)
def test_solving_leaves_the_tokens_alone(name: str) -> None:
    task = tasks[name]()
    tokens = draw(task, seed=0).tokens
    copy = tokens.clone()
    task.solve(tokens)
    assert torch.equal(tokens, copy)


@pytest.mark.parametrize("name", NAMES)
def test_classes_are_balanced_at_every_length(name: str) -> None:
    task = tasks[name]()
    for length in LENGTHS:
        targets = draw(task, seed=length, batch=4000, length=length).targets
        rows = rearrange(targets, "batch ... -> batch (...)")
        for label in range(task.n_classes):
            # Answers of one sequence may depend on one another, so sequences are the unit.
            surplus = (rows == label).sum(dim=1) - (rows != -100).sum(dim=1) / task.n_classes
            assert surplus.mean().abs() < 4 * surplus.std() / 4000**0.5


@pytest.mark.parametrize("name", NAMES)
def test_a_length_that_is_too_short_is_refused(name: str) -> None:
    task = tasks[name]()
    short = task.min_length - 1
    message = f"at least {task.min_length} symbols; got length={short}; ask"
    with pytest.raises(ValueError, match=message):
        draw(task, seed=0, length=short)
    with pytest.raises(ValueError, match=message):
        task.floors(short)
    assert (draw(task, seed=0, batch=500, length=task.min_length).targets != -100).any()


@pytest.mark.parametrize("name", [n for n in NAMES if "alphabet" in tasks[n].difficulty])
def test_one_symbol_is_not_an_alphabet(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} .* at least 2; got alphabet=1; ask"):
        tasks[name](alphabet=1)


@pytest.mark.parametrize("name", NAMES)
def test_a_task_certifies_itself(name: str) -> None:
    task = tasks[name]()
    certificate = task.certify(16)
    assert isinstance(certificate, Certificate)
    assert certificate.length == 16
    assert certificate.solver_accuracy == 1.0
    assert sum(certificate.class_shares) == pytest.approx(1)
    assert certificate.largest_share == max(certificate.class_shares)
    assert certificate.largest_share < 1 / task.n_classes + 0.05
    assert certificate.floors == task.floors(16)
    assert 0.3 < certificate.scored_share <= 1
    assert certificate == task.certify(16)


def test_a_wrong_solver_fails_its_certificate() -> None:
    class Wrong(tasks["reverse"]):
        def solve(self, tokens: Int[Tensor, "batch seq"]) -> Int[Tensor, "batch seq"]:
            return (super().solve(tokens) + 1) % self.n_classes

        def sample(self, generator: torch.Generator, batch: int, length: int) -> Batch:
            drawn = super().sample(generator, batch, length)
            return Batch(drawn.tokens, (drawn.targets - 1) % self.n_classes, drawn.keep)

    assert Wrong().certify(8).solver_accuracy == 0.0


def test_a_task_shows_its_options() -> None:
    assert repr(tasks["shift"](k=2)) == "shift(k=2, alphabet=8)"
    assert repr(tasks["parity"]()) == "parity(answer_at='mean')"


def test_skill_is_measured_from_the_highest_floor_below_one() -> None:
    assert Floors(constant=0.2, index=0.7, bag=0.3).highest == 0.7
    assert Floors(constant=0.5, index=0.5, bag=1.0).highest == 0.5


class RightPadded(Task):
    """Give the last real token at every real position; the second half of each row is padding."""

    name: ClassVar[str] = "right_padded"
    readout = "tokens"
    difficulty: ClassVar[tuple[str, ...]] = ("length",)

    @property
    def vocab_size(self) -> int:
        return 4

    @property
    def n_classes(self) -> int:
        return 3

    def sample(self, generator: torch.Generator, batch: int, length: int) -> Batch:
        tokens = torch.randint(1, 4, (batch, length), generator=generator)
        tokens[:, length // 2 :] = self.pad_id
        return Batch(tokens, self.solve(tokens), tokens != self.pad_id)

    def solve(self, tokens: Int[Tensor, "batch seq"]) -> Int[Tensor, "batch seq"]:
        real = tokens != self.pad_id
        last = tokens.gather(1, real.sum(dim=1, keepdim=True) - 1)
        return torch.where(real, last - 1, -100)


def test_a_users_task_gets_its_floors_by_sampling() -> None:
    floors = RightPadded().floors(4)
    # Two real tokens of three symbols: the bag leaves a coin toss in two cases of three.
    assert floors.constant == pytest.approx(1 / 3, abs=0.05)
    assert floors.index == pytest.approx(1 / 3, abs=0.05)
    assert floors.bag == pytest.approx(1 / 3 + 2 / 3 / 2, abs=0.05)
    assert floors == RightPadded().floors(4)


def test_a_users_task_joins_the_table() -> None:
    try:
        assert register(RightPadded) is RightPadded
        assert tasks["right_padded"] is RightPadded
        assert RightPadded().certify(8).scored_share == 0.5
    finally:
        tasks.discard("right_padded")
