"""The promises of tasks catch what breaks them."""

from typing import Any

import pytest
import torch

from studies.tasks import Batch, Floors, tasks
from tests.studies.tasks import promises


class NeighboursAnswer(tasks["shift"]):
    """The target is off by one from the answer."""

    def sample(self, generator: torch.Generator, batch: int, length: int) -> Batch:
        drawn = super().sample(generator, batch, length)
        return Batch(drawn.tokens, drawn.targets.roll(1, dims=1), drawn.keep)


class LengthTells(tasks["first_last_match"]):
    """The longer, the more often equal."""

    def draw(self, generator: torch.Generator, batch: int, length: int) -> Any:
        symbols = super().draw(generator, batch, length)
        equal = torch.arange(batch) < batch * min(length, 64) / 64
        symbols[equal, -1] = symbols[equal, 0]
        return symbols


class ShowsPadding(tasks["reverse"]):
    """A symbol has the id of padding."""

    def draw(self, generator: torch.Generator, batch: int, length: int) -> Any:
        symbols = super().draw(generator, batch, length)
        return symbols.masked_fill(symbols == 3, self.pad_id)

    def answer(self, symbols: torch.Tensor) -> Any:
        return super().answer(symbols.masked_fill(symbols == 0, 3))


class DrawsFromAnywhere(tasks["shift"]):
    """The global generator has a say."""

    def sample(self, generator: torch.Generator, batch: int, length: int) -> Batch:
        return super().sample(torch.default_generator, batch, length)


class WritesInItsInput(tasks["odds_first"]):
    """Solving changes the tokens."""

    def solve(self, tokens: torch.Tensor) -> Any:
        targets = super().solve(tokens)
        tokens[:, 0] = 1
        return targets


class DropsAnOption(tasks["shift"]):
    """The alphabet never reaches the data."""

    def sample(self, generator: torch.Generator, batch: int, length: int) -> Batch:
        return tasks["shift"](k=self.k).sample(generator, batch, length)


class GrowsInNameOnly(tasks["duplicate"]):
    """The alphabet reaches the vocabulary and not the data."""

    def draw(self, generator: torch.Generator, batch: int, length: int) -> Any:
        return tasks["duplicate"]().draw(generator, batch, length)

    def pose(self, symbols: torch.Tensor) -> Any:
        return tasks["duplicate"]().pose(symbols)

    def solve(self, tokens: torch.Tensor) -> Any:
        return tasks["duplicate"]().solve(tokens)


class AnswersShortOnes(tasks["shift"]):
    """A length without answers is no problem."""

    def check_length(self, length: int) -> None:
        pass


class FlattersItself(tasks["stack_manipulation"]):
    """Floors that are too low make models look skilled."""

    def measure_floors(self, length: int) -> Floors:
        return Floors(1 / 3, 1 / 3, 1 / 3)


class LeavesASymbolOut(tasks["duplicate"]):
    """One symbol never comes."""

    def draw(self, generator: torch.Generator, batch: int, length: int) -> Any:
        return super().draw(generator, batch, length).clamp(max=self.alphabet - 1)


class PointsAtUnscored(tasks["shift"]):
    """Links of queries that nobody scores."""

    def links(self, tokens: torch.Tensor) -> Any:
        return torch.ones_like(super().links(tokens))


BROKEN = [
    (NeighboursAnswer, promises.answers_its_own_questions),
    (LengthTells, promises.tells_true_floors),
    (ShowsPadding, promises.keeps_tokens_and_targets_in_their_ranges),
    (DrawsFromAnywhere, promises.draws_from_its_generator_alone),
    (WritesInItsInput, promises.answers_its_own_questions),
    (DropsAnOption, promises.has_options_with_an_effect),
    (GrowsInNameOnly, promises.has_options_with_an_effect),
    (AnswersShortOnes, promises.refuses_lengths_without_answers),
    (FlattersItself, promises.tells_true_floors),
    (LeavesASymbolOut, promises.uses_all_of_its_tokens_and_classes),
    (PointsAtUnscored, promises.links_answers_to_what_they_need),
]


@pytest.mark.parametrize(("broken", "promise"), BROKEN)
def test_a_broken_task_is_caught(broken: type, promise: promises.Promise) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        promise(broken())


def test_every_promise_but_the_first_has_caught_something() -> None:
    assert {promise for _, promise in BROKEN} == set(promises.PROMISES[1:])
