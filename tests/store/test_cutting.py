"""Arrays are cut into the same groups as a loop over scores makes."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from store.cutting import cut

Score = tuple[int, int, str, int, float | None]


@st.composite
def scores(draw: st.DrawFn) -> list[Score]:
    """Scores run by run: id, seed, metric, length, value; measured alike, or not quite."""
    kinds = st.tuples(st.sampled_from(["accuracy", "nll"]), st.sampled_from([8, 16, 32]))
    alike = draw(st.lists(kinds, min_size=1, max_size=6, unique=True))
    found: list[Score] = []
    for run in range(draw(st.integers(1, 5))):
        own = draw(st.one_of(st.just(alike), st.permutations(alike)))
        own = own[: draw(st.sampled_from([len(own), len(own), 1]))]
        seed = draw(st.integers(0, 2))
        values = st.one_of(st.none(), st.floats(0, 1, allow_nan=False))
        found += [(run, seed, metric, length, draw(values)) for metric, length in own]
    return found


@given(found=scores())
@settings(max_examples=100, deadline=None, database=None, derandomize=True)
def test_by_length_every_score_goes_to_its_group(found: list[Score]) -> None:
    _, seeds, metrics, lengths, values = map(list, zip(*found, strict=True))
    meant: dict[Any, list[Any]] = {}
    for _, seed, metric, length, value in found:
        meant.setdefault((metric, length), []).append((seed, value))

    made = {
        key: list(zip(own, each, strict=True))
        for key, own, each in cut([seeds, values, metrics, lengths], 1, by_length=True)
    }

    assert {key: sorted(each, key=repr) for key, each in made.items()} == {
        key: sorted(each, key=repr) for key, each in meant.items()
    }


@given(found=scores())
@settings(max_examples=100, deadline=None, database=None, derandomize=True)
def test_over_lengths_a_run_has_its_mean_or_none_where_one_lacks(found: list[Score]) -> None:
    runs, seeds, metrics, lengths, values = map(list, zip(*found, strict=True))
    by_run: dict[Any, list[float | None]] = {}
    for run, seed, metric, _, value in found:
        by_run.setdefault((metric, run, seed), []).append(value)
    meant: dict[str, list[Any]] = {}
    for (metric, _, seed), each in by_run.items():
        known = [value for value in each if value is not None]
        mean = round(sum(known) / len(known), 9) if len(known) == len(each) else None
        meant.setdefault(metric, []).append((seed, mean))

    made: dict[str, list[Any]] = {}
    for (metric, length), own, each in cut(
        [runs, seeds, values, metrics, lengths], 1, by_length=False
    ):
        assert length is None
        rounded = [None if value is None else round(value, 9) for value in each]
        made.setdefault(metric, []).extend(zip(own, rounded, strict=True))

    assert {key: sorted(each, key=repr) for key, each in made.items()} == {
        key: sorted(each, key=repr) for key, each in meant.items()
    }
