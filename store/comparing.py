"""In what two runs differ."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from store.answers import Difference
from store.options import flatten, option_key

if TYPE_CHECKING:
    from store.records import Run
    from store.results import Results

RUN_FIELDS = (
    *("study", "task", "arm", "phase", "seed", "status", "reason", "parameters", "steps"),
    *("wall_seconds", "peak_bytes", "config_hash", "code_hash"),
)


def differences(results: "Results", first: "Run", second: "Run") -> list[Difference]:
    """Return in what two runs differ: themselves, config, source, environment, and scores."""
    one, other = _parts(results, first), _parts(results, second)
    return [each for part in one for each in _differences(part, one[part], other[part])]


def _parts(results: "Results", run: "Run") -> dict[str, Mapping[str, Any]]:
    return {
        "run": {name: getattr(run, name) for name in RUN_FIELDS},
        "config": flatten(run.config),
        "source": _sources(results, run),
        "environment": _environment(results, run),
        "provenance": flatten(run.provenance),
        "scores": _scores(results, run),
    }


def _differences(
    part: str, first: Mapping[str, Any], second: Mapping[str, Any]
) -> Iterator[Difference]:
    for name in dict.fromkeys([*first, *second]):
        if option_key(first, name) != option_key(second, name):
            yield Difference(part, name, first.get(name), second.get(name))


def _sources(results: "Results", run: "Run") -> dict[str, str]:
    parts = results.components(run.code_hash) if run.code_hash else []
    return {f"{part.kind} {part.name}": part.source_hash for part in parts}


def _environment(results: "Results", run: "Run") -> dict[str, Any]:
    place = run.environment_id
    return {} if place is None else flatten(results.environment(place))


def _scores(results: "Results", run: "Run") -> dict[str, float | None]:
    found = results.scores(phase="all", where=f"id == {run.id}")
    return {
        " ".join(
            [
                one.split,
                str(one.length),
                one.metric,
                *([] if one.bin is None else [f"bin {one.bin}"]),
            ]
        ): one.value
        for one in found
    }
