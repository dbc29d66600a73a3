"""Links are what the answers need: changing anything else changes no answer."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from einops import rearrange

from studies.tasks import Task, tasks

A = 4
SYMBOLS = [range(1, A + 1)]
CASES: list[tuple[str, dict[str, Any], int, list[range]]] = [
    # task, options, length, tokens that may stand for one another
    ("shift", {"k": 2, "alphabet": A}, 6, SYMBOLS),
    ("multi_shift", {"offsets": 1, "alphabet": A}, 6, SYMBOLS),
    ("reverse", {"alphabet": A}, 6, SYMBOLS),
    ("reverse", {"alphabet": A, "answer_at": "appended"}, 4, SYMBOLS),
    ("odds_first", {"alphabet": A, "answer_at": "in_place"}, 5, SYMBOLS),
    ("duplicate", {"alphabet": A}, 4, SYMBOLS),
    ("previous_occurrence", {"alphabet": A}, 8, SYMBOLS),
    ("nearest_marked", {"alphabet": A, "mark_probability": 0.4}, 7, [*SYMBOLS, range(5, 9)]),
    ("first_last_match", {"alphabet": A}, 6, SYMBOLS),
    ("first_last_match", {"alphabet": A, "answer_at": "prepended"}, 6, SYMBOLS),
    ("even_pairs", {"answer_at": "first"}, 6, [range(1, 3)]),
    ("even_pairs", {}, 6, [range(1, 3)]),
    ("missing_duplicate", {"alphabet": A}, 7, SYMBOLS),
    ("induction_heads", {"alphabet": A}, 8, SYMBOLS),
    ("copy", {"alphabet": A}, 8, SYMBOLS),
    ("mqar", {"pairs": 2, "keys": 3, "values": 4}, 9, [range(1, 4), range(4, 8)]),
    ("unique_copy", {"alphabet": A}, 3, SYMBOLS),
    ("causal_copy", {"alphabet": A}, 4, SYMBOLS),
    ("causal_copy", {"alphabet": A, "form": "replace"}, 3, SYMBOLS),
    ("causal_reverse", {"alphabet": A}, 4, SYMBOLS),
]


@pytest.mark.parametrize(
    ("name", "options", "length", "kinds"),
    [pytest.param(*case, id=f"{case[0]}-{'-'.join(map(str, case[1].values()))}") for case in CASES],
)
def test_an_answer_needs_its_links_and_nothing_else(
    name: str, options: dict[str, Any], length: int, kinds: Sequence[range]
) -> None:
    task = tasks[name](**options)
    drawn = task.sample(torch.Generator().manual_seed(2), 12, length)
    links = task.links(drawn.tokens)
    assert links is not None
    moved = torch.zeros_like(links)
    for key in range(drawn.tokens.shape[1]):
        for kind in kinds:
            for other in kind:
                tokens = drawn.tokens.clone()
                of_kind = torch.isin(tokens[:, key], torch.tensor(list(kind)))
                tokens[of_kind, key] = other
                changed = changes(task, tokens, drawn.targets)
                moved[:, :, key] |= changed
                same_links = (task.links(tokens) == links).all(dim=2)
                unlinked = same_links & ~links[:, :, key]
                assert not (changed & unlinked).any(), "an answer hangs on a token without a link"
    values = torch.isin(drawn.tokens, torch.tensor([one for kind in kinds for one in kind]))
    # A token that is changed where it asks no longer asks the same.
    own = torch.eye(links.shape[1], dtype=torch.bool)
    needed = links & ~own & rearrange(values, "batch key -> batch 1 key")
    assert needed.any()
    assert moved[needed].all(), "a link that no answer hangs on"


def changes(task: Task, tokens: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Where a scored answer is another one, as (batch, query)."""
    after = task.solve(tokens)
    changed = (after != before) & (after != -100) & (before != -100)
    if task.readout == "tokens":
        return rearrange(changed, "batch seq ... -> batch seq (...)").any(dim=2)
    places = torch.zeros_like(tokens, dtype=torch.bool)
    places[:, 0 if task.readout == "first" else -1] = changed
    return places


def test_the_place_of_reading_decides_where_the_links_start() -> None:
    tokens = torch.tensor([[3, 1, 2]])
    places = {"first": 0, "last": 2, "prepended": 0, "appended": 3}
    for place, query in places.items():
        task = tasks["first_last_match"](answer_at=place)
        links = task.links(task.pose(tokens))
        ends = (1, 3) if place == "prepended" else (0, 2)
        assert links.nonzero().tolist() == [[0, query, key] for key in ends]
    mean = tasks["first_last_match"](answer_at="mean")
    assert mean.links(tokens) is None


def test_a_task_that_hangs_on_everything_says_nothing() -> None:
    for name in ("parity", "majority", "bucket_sort", "stack_manipulation", "binary_addition"):
        task = tasks[name]()
        assert task.links(task.sample(torch.Generator(), 2, 5).tokens) is None
    twice = tasks["causal_copy"](alphabet=3, times=2)
    assert twice.links(twice.sample(torch.Generator(), 2, 5).tokens) is None


def test_links_tell_the_distance_of_an_answer() -> None:
    task = tasks["mqar"](pairs=2, keys=5, values=6, filler="blank")
    tokens = torch.tensor([[2, 8, 4, 7, 12, 12, 4, 12, 12, 12, 12, 12, 2, 12, 12]])
    _, query, key = task.links(tokens).nonzero().T
    assert (query - key).tolist() == [6 - 3, 12 - 1]
