"""Where an answer is read: an option of the task that changes nothing else."""

import pytest
import torch

from registry import ConfigError
from registry.choices import resolve
from studies.tasks import tasks
from studies.tasks.task import check_choice
from tests.messages import Messages

ONE = ("even_pairs", "first_last_match", "majority", "missing_duplicate", "parity")
STRINGS = ("bucket_sort", "odds_first", "reverse")


@pytest.mark.parametrize("name", ONE)
def test_one_answer_can_be_read_at_five_places(name: str) -> None:
    shown = {}
    for place in ("first", "last", "mean", "prepended", "appended"):
        task = tasks[name](answer_at=place)
        shown[place] = task.sample(torch.Generator().manual_seed(0), 20, 7)
        assert task.readout == {"prepended": "first", "appended": "last"}.get(place, place)
        assert torch.equal(shown[place].targets, shown["first"].targets)
        assert task.floors(7) == tasks[name](answer_at="first").floors(7)

    symbols, empty = shown["first"].tokens, tasks[name](answer_at="appended").empty
    assert torch.equal(shown["last"].tokens, symbols)
    assert torch.equal(shown["prepended"].tokens[:, 1:], symbols)
    assert torch.equal(shown["appended"].tokens[:, :-1], symbols)
    assert (shown["prepended"].tokens[:, 0] == empty).all()
    assert (shown["appended"].tokens[:, -1] == empty).all()
    assert not (symbols == empty).any()


@pytest.mark.parametrize("name", STRINGS)
def test_a_string_can_be_read_in_place_or_behind(name: str) -> None:
    here, behind = tasks[name](answer_at="in_place"), tasks[name](answer_at="appended")
    first, second = (one.sample(torch.Generator().manual_seed(0), 20, 7) for one in (here, behind))
    assert torch.equal(second.tokens[:, :7], first.tokens)
    assert (second.tokens[:, 7:] == behind.empty).all()
    assert torch.equal(second.targets[:, 7:], first.targets)
    assert (second.targets[:, :7] == -100).all()
    assert (behind.vocab_size, behind.seq(7)) == (here.vocab_size + 1, 14)
    assert here.floors(7) == behind.floors(7)


@pytest.mark.parametrize("name", [*ONE, *STRINGS])
def test_another_place_is_refused_in_a_config(messages: Messages, name: str) -> None:
    with messages.raises(ConfigError):
        resolve("task", {"name": name, "answer_at": "middle"})


def test_a_value_that_is_none_of_the_choices_is_refused_by_name(messages: Messages) -> None:
    check_choice("copy", "longest", "half", ("context", "half"))
    with messages.raises(ValueError):
        check_choice("copy", "longest", "all", ("context", "half"))


def test_a_place_that_a_task_always_had_is_its_default() -> None:
    kept = {"first_last_match": "last", "majority": "mean", "parity": "mean"}
    for name, place in kept.items():
        assert tasks[name]().answer_at == place
    assert tasks["reverse"]().answer_at == tasks["bucket_sort"]().answer_at == "in_place"
