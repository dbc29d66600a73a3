"""How long questions take in a large database, beside the time that SQLite takes to read it.

python benchmarks/queries.py [--runs N] [--rounds N]

Makes N runs of ten scores each and asks every question; a score table read once by SQLite itself
is the unit, measured in the same rounds. Processor time is counted, so that a crowded machine says
the same; the least over the rounds is printed. `peak` is what an export holds in memory at most,
beside one of a tenth of the rows. Exit code 1 when a figure is above its limit.
"""

import argparse
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from sqlalchemy import insert, update

from store import Ledger, PlannedRun, Results, make_engine
from store.encoding import score_rows
from store.models import RunRow, ScoreRow, now
from store.output import Table, write
from store.sql import read_sql
from store.where import Selection

POSITIONS = ("none", "learned", "rope", "alibi", "t5_bias")
RATES = (1e-4, 3e-4, 1e-3, 3e-3)
SEEDS = 20
# Processor seconds. Without a limit: what is there to be compared with, and the means of every
# metric of every study at once, which no question asks for.
FIRST_PAGE = {"runs, first page": 0.5, "runs, with start-up": 0.5}
UNLIMITED = dict.fromkeys(("read by SQLite", "imports alone", "every metric"), math.inf)
LIMIT, LIMITS = 1.0, {**FIRST_PAGE, **UNLIMITED}
WRITE_LIMIT, PEAK_LIMIT = 0.020, 1.5
# What a command line cannot do without, and what we do not write.
FLOOR = "import sqlalchemy.orm, typer, pydantic"
WHERE = 'position in ("rope", "alibi") and length >= 64 and metric == "accuracy" and value > 0.9'


def planned(number: int) -> PlannedRun:
    seed, setting = number % SEEDS, number // SEEDS
    arm, rate = POSITIONS[setting % 5], RATES[setting // 5 % 4]
    study, task = f"study{setting // 100}", f"task{setting // 20 % 5}"
    config = {
        "encoder": {"position": {"name": arm}, "d_model": 64, "n_heads": 4, "n_layers": 2},
        "task": {"name": task},
        "training": {"learning_rate": rate, "steps": 1000, "train_lengths": [2, 16]},
    }
    phase = "tune" if seed < 2 else "confirm"
    name = f"{study} {task} {arm} {rate}"
    return PlannedRun(study, task, arm, phase, seed, config, name, "c", f"{name} {seed}", 1000)


def scores(number: int, lengths: tuple[int, ...] = (16, 32, 64, 128, 256)) -> list[dict[str, Any]]:
    return [
        {"split": split, "length": length, "metric": metric, "n": 100, "value": number % 97 / 97}
        for split, metric in (("test", "accuracy"), ("validation", "nll"))
        for length in lengths
    ]


def fill(url: str, runs: int) -> Ledger:
    """Plan the runs, and put what each would have written into the tables, all at once."""
    ledger = Ledger.create(url)
    for start in range(0, runs, 5000):
        ledger.plan(planned(one) for one in range(start, min(start + 5000, runs)))
    over: dict[str, Any] = {"status": "done", "attempt": 1, "worker": "w", "wall_seconds": 1.0}
    over |= {"started_at": now(), "finished_at": now()}
    engine = make_engine(url)
    with engine.begin() as connection:
        connection.execute(update(RunRow).values(over))
        for start in range(1, runs + 1, 5000):
            rows = (
                score_rows(one, scores(one)) for one in range(start, min(start + 5000, runs + 1))
            )
            connection.execute(insert(ScoreRow), list(chain.from_iterable(rows)))
    engine.dispose()
    return ledger


def seconds(work: Callable[[], object]) -> float:
    begun = spent()
    work()
    return spent() - begun


def spent() -> float:
    """Processor seconds of this process and of those that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def start(folder: str, *words: str) -> None:
    """Start Python with these words; what it compiles is kept, as it is for a user."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = {**kept, "PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
    subprocess.run([sys.executable, *words], env=environment, check=True, capture_output=True)


def read_all(url: str) -> None:
    with read_sql(url, "select sum(value), count(distinct n) from es_scores") as (_, rows):
        list(rows)


def write_one(ledger: Ledger, at: int) -> None:
    (number,) = ledger.plan([planned(at)])
    claim = ledger.claim("w", [number])
    assert claim is not None
    curves = [{"step": step, "metric": "loss", "value": 1.0} for step in range(1000)]
    ledger.finish(claim, "done", scores=scores(at, tuple(range(50))), curves=curves)


def peak(results: Results, path: Path, limit: int) -> float:
    from store.queries import Order

    tracemalloc.start()
    with results.stream("scores", Selection(phase="all"), Order(limit=limit)) as find:
        found = find()
        write(Table(found.columns, found.rows), "csv", str(path), overwrite=True)
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return size / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description="Time questions to a large database.")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/sandbox.db"
        ledger = fill(url, given.runs)
        results = Results(url)
        questions: dict[str, Callable[[], object]] = {
            "read by SQLite": lambda: read_all(url),
            "runs, first page": lambda: results.runs(limit=100),
            "imports alone": lambda: start(folder, "-c", FLOOR),
            "runs, with start-up": lambda: start(folder, "-m", "store", "runs", "--storage", url),
            "runs, sorted": lambda: results.runs(limit=100, sort="-training.learning_rate"),
            "scores, first page": lambda: results.scores(limit=100),
            "scores, filtered": lambda: results.scores(where=WHERE, limit=100),
            "scores, none found": lambda: results.scores(where="value > 2"),
            "scores, by a config": lambda: results.scores(
                where="value < training.learning_rate", limit=100
            ),
            "scores, sorted": lambda: results.scores(sort="-value", limit=100),
            "lengths": lambda: results.summary(metric="accuracy", split="test"),
            "position by length": lambda: results.summary(
                ["position", "length"], metric="accuracy", split="test"
            ),
            "every metric": lambda: results.summary(),
            "lengths below 0.9": lambda: results.below(0.9),
            "best": results.best,
            "cost": results.cost,
            "failures": results.failures,
            "changed": results.changed,
        }
        times = {
            name: [seconds(ask) for _ in range(given.rounds)] for name, ask in questions.items()
        }
        unit = min(times["read by SQLite"])
        above: list[str] = []
        print(f"{given.runs} runs, {10 * given.runs} scores; processor seconds, and times the unit")
        for name, found in times.items():
            least = min(found)
            limit = LIMITS.get(name, LIMIT)
            above += [name] * (least > limit)
            told = f"   limit {limit:.1f} s" if math.isfinite(limit) else ""
            print(f"  {name:20} {least:8.3f} s {least / unit:8.1f}{told}")
        # The first is not counted: it is when the statements are compiled.
        after = range(given.runs, given.runs + given.rounds + 1)
        took = [seconds(partial(write_one, ledger, at)) for at in after]
        wrote = min(took[1:])
        above += ["write one run"] * (wrote > WRITE_LIMIT)
        print(f"  {'write one run':20} {1000 * wrote:8.1f} ms (100 scores, 1000 points of a curve)")
        path = Path(folder) / "out.csv"
        rows = 10 * given.runs
        small, large = peak(results, path, rows // 10), peak(results, path, rows)
        print(f"  {'export, peak':20} {large:8.1f} MB {large / small:8.1f} times that of a tenth")
        above += ["export, peak"] * (large > PEAK_LIMIT * small)
    if above:
        sys.exit(f"above their limits: {', '.join(above)}")


if __name__ == "__main__":
    main()
