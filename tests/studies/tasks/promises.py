"""What every task promises, one function a promise; an assertion tells which one is broken."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
import torch
from einops import rearrange

from studies.tasks import Batch, Task

Promise = Callable[[Task], None]

READOUTS = ("tokens", "last", "first", "mean")


def says_what_it_is(task: Task) -> None:
    assert type(task).__dict__["name"] == task.name
    assert task.pad_id == 0
    assert task.readout in READOUTS
    assert task.difficulty[-1] == "length"
    assert all(hasattr(task, option) for option in task.difficulty[:-1])
    assert set(task.difficulty[:-1]) == set(inspect.signature(type(task)).parameters)


def keeps_tokens_and_targets_in_their_ranges(task: Task) -> None:
    length = fitting(task, 17)
    drawn = draw(task, 0, 600, length)
    scored = drawn.targets[drawn.targets != -100]
    assert drawn.tokens.dtype == drawn.targets.dtype == torch.long
    assert drawn.tokens.min() > task.pad_id
    assert drawn.tokens.max() < task.vocab_size
    assert scored.min() >= 0
    assert scored.max() < task.n_classes
    assert drawn.tokens.shape == (600, task.seq(length))
    assert drawn.keep.shape == drawn.tokens.shape
    assert drawn.keep.all()
    places = drawn.tokens.shape if task.readout == "tokens" else drawn.tokens.shape[:1]
    assert drawn.targets.shape[: len(places)] == places
    assert drawn.targets.numel() == places.numel() * task.answers


def uses_all_of_its_tokens_and_classes(task: Task) -> None:
    drawn = [draw(task, seed, 800, fitting(task, length)) for seed, length in ((0, 16), (1, 17))]
    tokens = torch.cat([rearrange(one.tokens, "batch seq -> (batch seq)") for one in drawn])
    targets = torch.cat([rearrange(one.targets, "batch ... -> (batch ...)") for one in drawn])
    assert tokens.unique().tolist() == list(range(1, task.vocab_size))
    assert targets[targets != -100].unique().tolist() == list(range(task.n_classes))


def draws_from_its_generator_alone(task: Task) -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = draw(task, 7)
    task.floors(fitting(task, 12))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    second = draw(type(task)(**options_of(task)), 7)
    assert torch.equal(first.tokens, second.tokens)
    assert torch.equal(first.targets, second.targets)
    assert not torch.equal(first.tokens, draw(task, 8).tokens)


def answers_its_own_questions(task: Task) -> None:
    for length in lengths_of(task):
        drawn = draw(task, length, 64, length)
        untouched = drawn.tokens.clone()
        assert torch.equal(task.solve(drawn.tokens), drawn.targets)
        assert torch.equal(drawn.tokens, untouched), "solving changes the tokens"
        assert (drawn.targets != -100).any()


def refuses_lengths_without_answers(task: Task) -> None:
    wrong = [task.min_length - 1] if task.max_length is None else [0, task.max_length + 1]
    for length in wrong:
        message = rf"have length \d+; got length={length}; ask for \d+ or (more|less)"
        with pytest.raises(ValueError, match=message):
            draw(task, 0, 2, length)
        with pytest.raises(ValueError, match=message):
            task.floors(length)


def tells_true_floors(task: Task) -> None:
    """Also its balance: where the constant scores 1 / n_classes, all classes are as frequent."""
    for length in lengths_of(task)[:3]:
        targets, floors = draw(task, length, 4000, length).targets, task.floors(length)
        rows = rearrange(targets, "batch ... -> batch (...)")
        shares = class_shares(rows, task.n_classes)
        # The answers of one sequence may depend on one another, so sequences are the unit.
        error = 5 / 4000**0.5
        assert shares.max() < floors.constant + error
        assert shares.max() > floors.constant - error / 5
        chosen, scored = rows[:2000], rows[2000:]
        best = torch.stack([(chosen == label).sum(0) for label in range(task.n_classes)]).argmax(0)
        hits = (scored == best).sum() / (scored != -100).sum()
        assert hits < floors.index + error
        assert hits > floors.index - 2 * error
        assert floors.bag > floors.constant - 1e-9


def has_options_with_an_effect(task: Task) -> None:
    before = draw(task, 3, 40)
    for option, value in others(task):
        other = type(task)(**{**options_of(task), option: value})
        after = draw(other, 3, 40)
        same = before.tokens.equal(after.tokens) and before.targets.equal(after.targets)
        assert not same or task.readout != other.readout, f"{option}={value!r} changes no data"


def links_answers_to_what_they_need(task: Task) -> None:
    for length in lengths_of(task)[:3]:
        drawn = draw(task, length, 64, length)
        links = task.links(drawn.tokens)
        if links is None:
            continue
        batch, seq = drawn.tokens.shape
        assert links.shape == (batch, seq, seq)
        assert links.dtype == torch.bool
        scored = drawn.targets != -100
        if task.readout != "tokens":
            scored = torch.zeros(batch, seq, dtype=torch.bool)
            scored[:, 0 if task.readout == "first" else -1] = True
        elif task.answers > 1:
            scored = scored.any(dim=2)
        assert not links[~scored].any(), "an unscored query has a link"
        assert links.any()
        assert not task.causal or not links.triu(1).any(), "a link from the future"


PROMISES: list[Promise] = [
    says_what_it_is,
    keeps_tokens_and_targets_in_their_ranges,
    uses_all_of_its_tokens_and_classes,
    draws_from_its_generator_alone,
    answers_its_own_questions,
    refuses_lengths_without_answers,
    tells_true_floors,
    has_options_with_an_effect,
    links_answers_to_what_they_need,
]


def draw(task: Task, seed: int, batch: int = 50, length: int | None = None) -> Batch:
    length = fitting(task, 12) if length is None else length
    return task.sample(torch.Generator().manual_seed(seed), batch, length)


def fitting(task: Task, length: int) -> int:
    """The length nearest to this one that the task has."""
    return max(task.min_length, min(length, task.max_length or length))


def lengths_of(task: Task) -> list[int]:
    """Some lengths: the shortest ones, odd and even ones, a long one."""
    shortest = task.min_length
    return sorted({fitting(task, length) for length in (shortest, shortest + 1, 17, 64)})


def class_shares(rows: torch.Tensor, n_classes: int) -> torch.Tensor:
    return torch.bincount(rows[rows != -100], minlength=n_classes) / (rows != -100).sum()


def options_of(task: Task) -> dict[str, Any]:
    return {option: getattr(task, option) for option in inspect.signature(type(task)).parameters}


def others(task: Task) -> Iterator[tuple[str, Any]]:
    """Another value of each option, after its type."""
    hints = get_type_hints(type(task).__init__)
    for option, value in options_of(task).items():
        if get_origin(hints[option]) is Literal:
            yield from ((option, other) for other in get_args(hints[option]) if other != value)
        else:
            yield option, value / 2 if isinstance(value, float) else value + 1
