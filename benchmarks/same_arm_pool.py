"""A pool of runs of one and the same arm, to see how often a difference is claimed where none is.

python benchmarks/same_arm_pool.py --out tests/studies/data/same_arm_pool.csv

Trains the arm on every seed at every learning rate, as the quick extrapolation study does on one
of its panels, so that tuning can be done over again within each shuffle of the pool; about five
CPU seconds a run. There are two rates more than in that study, which come close to each other
in validation nll, so that tuning has something to get wrong. A pool that exists is
completed, not begun anew.
"""

import argparse
import csv
import shlex
import sys
from pathlib import Path

import torch

from studies.execution.trials import RATE
from studies.experiment.draft import Draft
from studies.experiment.overrides import gather
from studies.experiment.plan import Cell
from studies.experiment.tune import validation_nll
from studies.extrapolation import QUICK, STUDY
from studies.training.execute import execute

ASSIGNMENTS = [
    "evaluation.test_lengths=[16, 20, 24, 32, 64]",
    "evaluation.examples=256",
    "study.learning_rates=[1e-3, 3e-3, 1e-2, 3e-2, 1e-1]",
]
LENGTHS = (16, 20, 24, 32, 64)
COLUMNS = ["seed", "learning_rate", "status", "nll", *(f"skill_{one}" for one in LENGTHS)]


def row(plan: Draft, cell: Cell, seed: int, rate: float) -> dict[str, object]:
    """One run: its status, mean validation nll and skill at each tested length."""
    outcome = execute(plan.config(cell, {RATE: rate}), seed, torch.device("cpu"))
    skills = {
        f"skill_{score.length}": round(score.value, 6)
        for score in outcome.scores
        if (score.split, score.metric) == ("test", "skill") and score.value is not None
    }
    nll = validation_nll(outcome.scores)
    shown = {} if nll is None else {"nll": f"{nll:.6g}"}
    return {"seed": seed, "learning_rate": rate, "status": outcome.status, **shown, **skills}


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a pool, whose first lines are remarks."""
    with path.open() as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def put_in_order(path: Path) -> None:
    """Sort the rows by seed and rate, below the remarks."""
    remarks = [line for line in path.read_text().splitlines(True) if line.startswith("#")]
    found = sorted(rows(path), key=lambda one: (int(one["seed"]), float(one["learning_rate"])))
    with path.open("w") as file:
        file.writelines(remarks)
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arm", default="sinusoidal")
    parser.add_argument("--panel", type=int, default=0, help="0: shift, 1: nearest_marked")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--out", type=Path, required=True)
    told = parser.parse_args()
    torch.set_num_threads(1)
    plan = Draft(STUDY, gather(QUICK, None, ASSIGNMENTS))
    cell = next(one for one in plan.cells() if (one.panel, one.arm) == (told.panel, told.arm))
    if not told.out.exists():
        command = shlex.join(["python", *sys.argv])
        told.out.write_text(f"# {command}\n{','.join(COLUMNS)}\n")
    done = {(int(one["seed"]), float(one["learning_rate"])) for one in rows(told.out)}
    for seed in range(told.seeds):
        for rate in plan.settings.study.learning_rates or ():
            if (seed, rate) not in done:
                with told.out.open("a") as file:
                    csv.DictWriter(file, COLUMNS).writerow(row(plan, cell, seed, rate))
    put_in_order(told.out)


if __name__ == "__main__":
    main()
