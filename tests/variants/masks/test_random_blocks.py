"""Random blocks: the same draws everywhere, without replacement, among the blocks of the text."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import create_mask

from tests.messages import Messages
from variants.masks import Blocks, Causal, GlobalTokens, Mask, Padding, RandomBlocks, Window


def mixed(word: int) -> int:
    for _ in range(2):
        word = (word ^ word >> 16) * 0x45D9F3B % 2**32
    return word ^ word >> 16


def draws(block: int, blocks: int, count: int, seed: int) -> list[int]:
    """Floyd's algorithm on plain numbers, as Bentley and Floyd 1987 print it."""
    chosen: list[int] = []
    for number, last in enumerate(range(blocks - count, blocks)):
        word = mixed(mixed(mixed((block + 0x9E3779B9) % 2**32) + seed & 0xFFFFFFFF) + number)
        one = word % (last + 1)
        chosen.append(last if one in chosen else one)
    return chosen


def cells(mask: Mask, n: int) -> Tensor:
    return mask.dense(1, 1, n, n)[0, 0]


@pytest.mark.parametrize(
    ("size", "count", "seed", "n"), [(1, 1, 0, 9), (2, 3, 7, 15), (3, 2, 1, 8)]
)
def test_the_blocks_are_those_that_the_algorithm_draws(
    size: int, count: int, seed: int, n: int
) -> None:
    mask, blocks = RandomBlocks(size, count, seed), -(-n // size)
    expected = torch.zeros(n, n, dtype=torch.bool)
    for query in range(n):
        drawn = draws(query // size, blocks, count, seed)
        for key in range(n):
            expected[query, key] = key // size in drawn
    assert torch.equal(cells(mask, n), expected)


def test_the_draws_are_the_same_in_every_version() -> None:
    assert RandomBlocks(1, count=2, seed=0).draw(6) == DRAWN


DRAWN = ".#..#.\n..#.#.\n...#.#\n.#.#..\n##....\n#....#"


def big_bird(query: int, key: int, n: int) -> bool:
    near = abs(query // 2 - key // 2) <= 1
    return near or min(query, key) < 2 or key // 2 in draws(query // 2, -(-n // 2), 1, 3)


def test_big_bird_is_a_combination() -> None:
    n, expected = 13, torch.zeros(13, 13, dtype=torch.bool)
    for query in range(n):
        for key in range(n):
            expected[query, key] = big_bird(query, key, n)
    mask = Blocks(2, radius=1) | GlobalTokens(2) | RandomBlocks(2, count=1, seed=3)
    assert torch.equal(cells(mask, n), expected)


@pytest.mark.parametrize("count", [1, 3, 6])
def test_every_query_sees_as_many_blocks_as_were_asked_for(count: int) -> None:
    allowed = cells(RandomBlocks(4, count), 40)
    assert (allowed.sum(-1) == 4 * count).all()
    assert torch.equal(allowed[::4], allowed[3::4])


def test_a_text_of_few_blocks_sees_them_all() -> None:
    for n in (1, 3, 6):
        assert cells(RandomBlocks(2, count=3), n).all()
    assert not cells(RandomBlocks(2, count=3), 7).all()


def test_every_block_is_drawn_as_often_as_the_others() -> None:
    n, count, seeds = 12, 3, 150
    each = [cells(RandomBlocks(1, count, seed), n) for seed in range(seeds)]
    seen = torch.stack(each).double().sum(0)
    expected = seeds * count / n
    # 144 cells, each of variance 1 - 3/12 of what is expected: in all 108, give or take 12.
    chi_squared = ((seen - expected) ** 2 / expected).sum().item()
    assert 60 < chi_squared < 156


def test_another_seed_draws_other_blocks_and_equality_reads_it() -> None:
    assert RandomBlocks(1, 2, seed=4) == RandomBlocks(1, 2, seed=4) != RandomBlocks(1, 2, seed=5)
    assert RandomBlocks(1, 2, seed=4).draw(9) != RandomBlocks(1, 2, seed=5).draw(9)


PADDED: dict[str, tuple[list[int], slice]] = {
    "on the left": ([0, 0, 1, 1, 1, 1, 1, 1, 1, 1], slice(2, None)),
    "on the right": ([1, 1, 1, 1, 1, 1, 1, 1, 0, 0], slice(8)),
    "on both sides": ([0, 1, 1, 1, 1, 1, 1, 1, 1, 0], slice(1, 9)),
}


@pytest.mark.parametrize("side", PADDED)
@pytest.mark.parametrize(
    "rule", [lambda: RandomBlocks(2, 2), lambda: Window(radius=1) | RandomBlocks(1, 1) & Causal()]
)
def test_a_padded_text_draws_what_it_would_draw_alone(side: str, rule: Callable[[], Mask]) -> None:
    keep, real = PADDED[side]
    padding = Padding(keep=torch.tensor([keep, [1] * 10]) > 0)
    together = (rule() & padding).dense(2, 1, 10, 10)
    assert torch.equal(together[0, 0, real, real], cells(rule(), 8))
    assert torch.equal(together[1, 0], cells(rule(), 10))


def test_flex_reads_the_same_blocks(messages: Messages) -> None:
    padding = Padding(lengths=[5, 8])
    mask = RandomBlocks(1, 2) & padding | GlobalTokens(1)
    read = create_mask(mask.mask_mod(queries=8, keys=8), 2, 1, 8, 8, device="cpu")
    assert torch.equal(read, mask.dense(2, 1, 8, 8))
    with messages.raises(ValueError):
        mask.mask_mod()


def test_a_chunk_draws_what_the_whole_draws() -> None:
    mask = RandomBlocks(2, 2)
    assert torch.equal(mask.chunk(slice(3, 6), 1, 1, 9, 9)[0, 0], cells(mask, 9)[3:6])
