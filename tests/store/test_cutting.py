"""Arrays are cut into the same groups as a loop over scores makes."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from store.grouping import Seeds, Values, cut, mean_by_seed

Score = tuple[int, str, int, float | None]


@st.composite
def scores(draw: st.DrawFn) -> list[Score]:
    """Scores run by run: seed, metric, length, value; measured alike, or not quite."""
    kinds = st.tuples(st.sampled_from(["accuracy", "nll"]), st.sampled_from([8, 16, 32]))
    alike = draw(st.lists(kinds, min_size=1, max_size=6, unique=True))
    found: list[Score] = []
    for _ in range(draw(st.integers(1, 5))):
        own = draw(st.one_of(st.just(alike), st.permutations(alike)))
        own = own[: draw(st.sampled_from([len(own), len(own), 1]))]
        seed = draw(st.integers(0, 2))
        values = st.one_of(st.none(), st.floats(0, 1, allow_nan=False))
        found += [(seed, metric, length, draw(values)) for metric, length in own]
    return found


@given(found=scores())
@settings(max_examples=100, deadline=None, database=None, derandomize=True)
def test_every_score_goes_to_its_group(found: list[Score]) -> None:
    seeds, metrics, lengths, values = map(tuple, zip(*found, strict=True))
    meant: dict[Any, list[Any]] = {}
    for seed, metric, length, value in found:
        meant.setdefault((metric, length), []).append((seed, value))

    parts = cut(seeds, [metrics, lengths])

    assert {
        part.key: list(zip(part.seeds.numbers, part.of(values), strict=True)) for part in parts
    } == meant


@given(configs=st.lists(scores(), min_size=1, max_size=4), same=st.booleans())
@settings(max_examples=100, deadline=None, database=None, derandomize=True)
def test_a_seed_has_the_mean_of_its_values_whatever_the_config(
    configs: list[list[Score]], same: bool
) -> None:
    if same:
        configs = [configs[0]] * len(configs)
    meant: dict[int, list[float]] = {}
    for seed, _, _, value in (score for scores in configs for score in scores):
        meant.setdefault(seed, []).extend([] if value is None else [value])

    columns = [_column(found) for found in configs]
    made = mean_by_seed([seeds for seeds, _ in columns], [values for _, values in columns])

    means = [sum(each) / len(each) for _, each in sorted(meant.items()) if each]
    assert [round(one, 12) for one in made] == [round(one, 12) for one in means]


def _column(found: list[Score]) -> tuple[Seeds, Values]:
    seeds, _, _, values = map(tuple, zip(*found, strict=True))
    return Seeds(seeds), values
