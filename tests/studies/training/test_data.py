"""Training data: fresh sequences, or a fixed number of them."""

from collections import Counter

import pytest
import torch

from studies.seeds import Seeds
from studies.tasks.shift import Shift
from studies.tasks.task import Batch
from studies.training.data import batches, trained_lengths
from studies.training.settings import Training, Until
from tests.messages import Messages

TASK = Shift(k=1, alphabet=50)


def first(count: int, training: Training, replicate: int = 0) -> list[Batch]:
    training = training.model_copy(update={"steps": count})
    return list(batches(TASK, training, Seeds(0, replicate)))


def rows(found: list[Batch]) -> set[tuple[int, ...]]:
    return {tuple(row) for batch in found for row in batch.tokens.tolist()}


def test_a_small_set_of_examples_is_all_that_is_ever_seen() -> None:
    training = Training(examples=20, batch_size=8, train_lengths=(6, 9))

    seen = rows(first(300, training))

    assert len(seen) == 20
    assert {len(row) for row in seen} <= {6, 7, 8, 9}


def test_every_example_is_seen_about_equally_often() -> None:
    """With one example a batch, 3000 draws from 6 are 500 each, give or take 20."""
    training = Training(examples=6, batch_size=1, train_lengths=(6, 6))

    counts = Counter(row for batch in first(3000, training) for row in rows([batch]))

    assert len(counts) == 6
    assert all(abs(count - 500) < 100 for count in counts.values())


def test_a_batch_has_no_example_twice() -> None:
    training = Training(examples=5, batch_size=64, train_lengths=(6, 6))

    assert all(len(rows([batch])) == 5 == len(batch.tokens) for batch in first(10, training))


def test_fresh_examples_never_come_again() -> None:
    training = Training(batch_size=8, train_lengths=(6, 9))

    assert len(rows(first(50, training))) == 50 * 8


@pytest.mark.parametrize("examples", ["infinite", 30])
def test_the_data_of_a_replicate_is_the_same_at_every_call(examples: int | str) -> None:
    training = Training(examples=examples, train_lengths=(3, 9))  # type: ignore[arg-type]

    one, same, other = (first(5, training, replicate) for replicate in (0, 0, 1))

    assert all(torch.equal(a.tokens, b.tokens) for a, b in zip(one, same, strict=True))
    assert rows(one) != rows(other)


def test_steps_beyond_the_planned_ones_change_none_before() -> None:
    exact = Training(steps=4, train_lengths=(3, 9))
    longer = exact.model_copy(update={"until": Until()})

    short, long = (list(batches(TASK, one, Seeds(0, 0))) for one in (exact, longer))

    assert (len(short), len(long)) == (4, 12)
    assert all(torch.equal(a.tokens, b.tokens) for a, b in zip(short, long[:4], strict=True))


def test_lengths_without_answers_are_no_trained_lengths() -> None:
    assert trained_lengths(Shift(k=3), Training(train_lengths=(2, 16))) == (4, 16)


def test_a_batch_of_several_lengths_is_padded_and_each_length_has_its_share() -> None:
    training = Training(batch_size=8, lengths_per_batch=4, train_lengths=(6, 40))

    for batch in first(20, training):
        longest = int(batch.keep.sum(dim=1).max())
        assert batch.tokens.shape == batch.keep.shape == batch.targets.shape == (8, longest)
        assert torch.equal(batch.tokens != 0, batch.keep)
        real = batch.keep.sum(dim=1).tolist()
        assert real[::2] == real[1::2]
        # Whole sequences: all of the padding stands behind, and nothing there is scored.
        assert all(row[:n].all() for row, n in zip(batch.keep, real, strict=True))
        assert torch.equal(
            batch.targets[~batch.keep], torch.full_like(batch.tokens[~batch.keep], -100)
        )


def test_one_length_a_batch_draws_what_it_always_drew() -> None:
    """The first batch, drawn by hand from the streams of the replicate."""
    seeds, training = Seeds(0, 0), Training(batch_size=8, train_lengths=(6, 40))
    order, data = seeds.generator("order"), seeds.generator("data", "train", 1)
    length = int(torch.randint(6, 41, (3,), generator=order)[0])

    assert torch.equal(first(3, training)[0].tokens, TASK.sample(data, 8, length).tokens)


@pytest.mark.parametrize(
    "changes",
    [
        {"lengths_per_batch": 3},
        {"lengths_per_batch": 2, "examples": 50},
    ],
)
def test_a_batch_that_cannot_be_shared_out_is_refused(messages: Messages, changes: dict) -> None:
    with messages.raises(ValueError):
        Training(**changes)
