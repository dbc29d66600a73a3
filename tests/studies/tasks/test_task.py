"""What every task promises, and what a user's own task gets for free."""

import inspect
import math
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from jaxtyping import Int
from torch import Tensor

from registry.registry import REGISTRIES, register
from studies.tasks import Batch, Certificate, Floors, Task, tasks
from tests.messages import Messages
from tests.studies.tasks import promises

FOLDER = Path(inspect.getfile(Task)).parent
NAMES = sorted(file.stem for file in FOLDER.glob("[a-z]*.py") if file.stem != "task")


def test_listing_the_tasks_imports_no_torch() -> None:
    code = "import sys; from studies.tasks import tasks; print(*tasks, 'torch' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == [*NAMES, "False"]


def test_the_table_is_a_kind_like_any_other() -> None:
    assert REGISTRIES["task"] is tasks
    assert tasks.contract is Task
    assert list(tasks) == NAMES
    assert (tasks.plural, bool(tasks.about)) == ("tasks", True)


@pytest.mark.parametrize("promise", promises.PROMISES)
@pytest.mark.parametrize("name", NAMES)
def test_a_task_keeps_its_promises(name: str, promise: promises.Promise) -> None:
    promise(tasks[name]())


@pytest.mark.parametrize("name", [n for n in NAMES if "alphabet" in tasks[n].difficulty])
def test_one_symbol_is_not_an_alphabet(messages: Messages, name: str) -> None:
    with messages.raises(ValueError):
        tasks[name](alphabet=1)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("modular_arithmetic", {"modulus": 1}, "modulus must be at least 2; got modulus=1"),
    ("cycle_navigation", {"states": 1}, "states must be at least 2; got states=1"),
    ("duplicate", {"times": 0}, "times must be at least 1; got times=0"),
    ("mqar", {"pairs": 5, "keys": 4}, "got pairs=5, keys=4"),
    ("mqar", {"power": math.nan}, "got power=nan"),
    ("shift", {"k": 0}, "k must be at least 1; got k=0"),
    ("multi_shift", {"offsets": 0}, "offsets must be at least 1; got offsets=0"),
    ("nearest_marked", {"mark_probability": 1.0}, "got mark_probability=1.0"),
]


@pytest.mark.parametrize(("name", "options", "told"), REFUSED)
def test_an_option_out_of_range_is_refused_by_its_own_name(
    name: str, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        tasks[name](**options)


COPIES = {"copy"}
"""Tasks that score given tokens too, on purpose."""


@pytest.mark.parametrize(
    "name", [n for n in NAMES if n not in COPIES and tasks[n]().readout == "tokens"]
)
def test_to_say_ones_own_token_is_no_better_than_a_blind_guess(name: str) -> None:
    """A target that is off by one would be the token itself, and seem to be learned."""
    task = tasks[name]()
    length = max(task.min_length, 16)
    drawn = task.sample(torch.Generator().manual_seed(0), 400, length)
    targets = drawn.targets if task.answers == 1 else drawn.targets[..., 0]
    right = (drawn.tokens - 1 == targets)[targets != -100].double().mean().item()
    assert right < task.floors(length).highest + 0.02


def test_a_certificate_tells_solver_shares_and_floors() -> None:
    task = tasks["stack_manipulation"]()
    certificate = task.certify(16)
    assert isinstance(certificate, Certificate)
    assert certificate.length == 16
    assert certificate.solver_accuracy == 1.0
    assert sum(certificate.class_shares) == pytest.approx(1)
    assert certificate.largest_share == max(certificate.class_shares)
    assert certificate.largest_share == pytest.approx(certificate.floors.constant, abs=0.01)
    assert certificate.floors == task.floors(16)
    # 17 of the 33 positions are empty, and those behind the stop are unscored.
    assert 0.2 < certificate.scored_share < 17 / 33
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
