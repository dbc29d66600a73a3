"""Several processes share one database: each run is done once, and a killed one's is done again."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from store.ledger import Ledger
from store.records import PlannedRun
from store.results import Results

MakeRun = Callable[..., PlannedRun]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def url(any_url: str) -> str:
    return any_url


@pytest.fixture
def ledger(any_ledger: Ledger) -> Ledger:
    return any_ledger


@pytest.fixture
def url_of_a_new_file(path: Path) -> str:
    return f"sqlite:///{path}"


START = """
import sys
from store.ledger import Ledger, PlannedRun
url, name = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
"""
DRAIN = (
    START
    + """
ledger = Ledger.open(url)
score = {"split": "test", "length": 1, "metric": "accuracy", "n": 1, "value": 0.5}
while claim := ledger.claim(name, range(1, 121)):
    assert ledger.finish(claim, "done", scores=[score])
    print(claim.run.id, flush=True)
"""
)
HOLD = (
    START
    + """
claim = Ledger.open(url).claim(name, range(1, 3))
print(claim.run.id, flush=True)
sys.stdin.readline()
"""
)
PLAN = (
    START
    + """
ledger = Ledger.create(url)
runs = [
    PlannedRun("s", "t", "a", "confirm", seed, {"x": seed}, "h", None, f"id{seed}", 1)
    for seed in range(60)
]
print(ledger.plan(runs), flush=True)
"""
)


@contextmanager
def workers(script: str, url: str, names: list[str]) -> Iterator[list[subprocess.Popen[str]]]:
    """Start processes that have imported everything and wait for a line to begin."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script, url, name],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for name in names
    ]
    try:
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def go(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()


def test_four_processes_do_each_run_once(ledger: Ledger, url: str, make_run: MakeRun) -> None:
    ids = ledger.plan([make_run(seed) for seed in range(120)])
    with workers(DRAIN, url, ["a", "b", "c", "d"]) as processes:
        go(processes)
        claimed = [process.communicate()[0].split() for process in processes]
        assert [process.returncode for process in processes] == [0, 0, 0, 0]
    assert sorted(int(run_id) for each in claimed for run_id in each) == ids
    assert ledger.counts(ids)["done"] == 120
    assert len(ledger.scores(ids)) == 120
    assert {run.attempt for run in ledger.runs(ids)} == {1}


def test_a_killed_workers_run_is_done_again(ledger: Ledger, url: str, make_run: MakeRun) -> None:
    ids = ledger.plan([make_run(seed) for seed in range(2)])
    with workers(HOLD, url, ["victim"]) as (victim,):
        go([victim])
        assert victim.stdout is not None
        assert victim.stdout.readline() == f"{ids[0]}\n"
        victim.send_signal(signal.SIGKILL)
        assert victim.wait() == -signal.SIGKILL
    (lost,) = ledger.recover(ids, lambda worker: worker != "victim")
    assert (lost.id, lost.worker) == (ids[0], "victim")
    claim = ledger.claim("heir", ids)
    assert claim is not None
    assert (claim.run.id, claim.attempt) == (ids[0], 2)
    assert ledger.finish(claim, "done")


@pytest.mark.parametrize(
    "kind", ["url_of_a_new_file", pytest.param("server_url", marks=pytest.mark.slow)]
)
def test_two_parents_may_create_and_plan_at_once(request: pytest.FixtureRequest, kind: str) -> None:
    place: str = request.getfixturevalue(kind)
    with workers(PLAN, place, ["a", "b"]) as processes:
        go(processes)
        printed = [process.communicate()[0] for process in processes]
        assert [process.returncode for process in processes] == [0, 0]
    assert printed[0] == printed[1]
    results = Results(place)
    assert len(results.runs()) == 60
    results.close()
