"""Do two checkouts of this project compute the same numbers, bit by bit, on this machine?

python benchmarks/same_scores.py OTHER_CHECKOUT [--python OTHER_PYTHON]

Trains the same tiny models in both, as `python -m studies.run` does with one worker and one thread:
many parts, tasks and ways to train, for a few dozen steps each. Then compares every score, every
point of a curve and the status and size of every run. Metrics and rows that are filled in rather
than measured may be on one side alone; they are named and not compared. Exit code 1 when anything
else differs.
"""

import argparse
import os
import sqlite3
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
SHOWN = 20

SIZES = "encoder: {d_model: 16, n_heads: 2, n_layers: 2}"
SHORT = (
    "evaluation: {test_lengths: [8, 12, 20], examples: 24, batch_size: 16, "
    "checkpoint_examples: 8}"
)  # fmt: skip

PARTS = f"""
name: same_parts
question: Do all parts compute what they did?
variable: [encoder.position, encoder.norm, encoder.norm_placement, encoder.mask, encoder.attention,
  encoder.feedforward, encoder.initializer, encoder.readout, encoder.dropout, encoder.share_layers,
  encoder.position_per_layer, training.weight_decay]
{SIZES}
training: {{steps: 24, batch_size: 8, warmup_steps: 4, learning_rate: 0.003, train_lengths: [3, 8]}}
{SHORT}
study:
  seeds: 1
  panels:
    - {{task: {{name: shift, k: 2, alphabet: 4}}, arms: [plain, rope, alibi, t5, batch, random,
        cope, linear, window, dropped, tied, chunks, diverges]}}
    - {{task: parity, arms: [plain, rope, pooled]}}
    - {{task: causal_copy, arms: [causal, causal_random]}}
    - {{task: multi_shift, arms: [plain, rope]}}
    - {{task: mqar, arms: [plain], training: {{train_lengths: [8, 16]}},
        evaluation: {{test_lengths: [16, 24]}}}}
    - {{task: stack_manipulation, arms: [random]}}
    - {{task: bucket_sort, arms: [rope]}}
  arms:
    plain: {{}}
    rope: {{encoder.position: rope, encoder.norm: rmsnorm, encoder.feedforward: swiglu}}
    alibi: {{encoder.position: alibi, encoder.attention: explicit, encoder.norm_placement: post}}
    t5: {{encoder.position: t5_bias, encoder.initializer: t5, encoder.norm_placement: sandwich,
      encoder.position_per_layer: true}}
    batch: {{encoder.norm: batchnorm, encoder.position: learned, encoder.initializer: normal}}
    random: {{encoder.position: randomized_rope}}
    cope: {{encoder.position: cope, encoder.attention: explicit, encoder.norm_placement: rezero,
      encoder.mask: causal}}
    linear: {{encoder.attention: linear, encoder.feedforward: relu, encoder.norm: dyt}}
    window: {{encoder.mask: "window(radius=3) | global_tokens(count=1)", encoder.position: shaw}}
    dropped: {{encoder.dropout: 0.1, encoder.norm_placement: parallel, encoder.position: fire}}
    tied: {{encoder.share_layers: true, encoder.initializer: deepnorm,
      encoder.norm_placement: deepnorm, encoder.position: transformer_xl}}
    chunks: {{encoder.attention: chunked, encoder.position: kerple,
      encoder.mask: "dilated(rate=2)"}}
    diverges: {{training.weight_decay: 1.0e+20}}
    pooled: {{encoder.readout: attention_pooling, encoder.position: concatenated}}
    causal: {{encoder.mask: causal, encoder.position: xpos}}
    causal_random: {{encoder.mask: causal, encoder.position: random_offset}}
"""

WAYS = f"""
name: same_ways
question: Do all ways to train and to look into a model give what they did?
variable: [encoder.position, encoder.pad_id, training.schedule, training.dtype,
  training.lengths_per_batch, training.examples, training.until, training.train_lengths]
{SIZES}
task: {{name: reverse, alphabet: 4}}
training: {{steps: 20, batch_size: 8, warmup_steps: 0.2, train_lengths: [2, 8]}}
evaluation:
  {{test_lengths: [8, 12], examples: 24, batch_size: 16, checkpoints: 2, checkpoint_examples: 8,
    position_draws: 2, probes: [attention, activation_scale, gradient_norms, scores_by_index]}}
study:
  seeds: 2
  learning_rates: [0.001, 0.01]
  tuning_seeds: 2
  arms:
    plain: {{}}
    noam: {{training.schedule: noam}}
    wide: {{training.dtype: float64, training.schedule: cosine}}
    narrow: {{training.dtype: bfloat16, training.schedule: constant}}
    mixed: {{training.lengths_per_batch: 4, encoder.pad_id: 0}}
    few: {{training.examples: 16}}
    until: {{training.until: {{value: 0.2, every: 2, cap: 1.5}}}}
    drawn: {{encoder.position: randomized_learned}}
"""

OWN = f"""
name: same_own
question: Do a part of the user's and a model of the user's give what they did?
variable: [encoder.position, model]
import: [parts.py]
{SIZES}
task: {{name: shift, k: 1, alphabet: 4}}
training: {{steps: 20, batch_size: 8, learning_rate: 0.003, train_lengths: [2, 8]}}
{SHORT}
study:
  seeds: 1
  arms:
    tilted: {{encoder.position: tilted}}
    recurrent: {{model: "parts:recurrent"}}
"""

PLUGIN = '''
import torch
from einops import rearrange
from torch import nn

from registry import register
from variants.positions import Position


@register
class Tilted(Position):
    """A slope that every head shares."""

    name = "tilted"
    sees_direction = False
    distance_only = True

    def bias(self, q_index, k_index):
        query = rearrange(q_index, "batch query -> batch 1 query 1")
        key = rearrange(k_index, "batch key -> batch 1 1 key")
        return (-0.1 * (query - key).abs().float()).expand(-1, self.dims.n_heads, -1, -1)


class Recurrent(nn.Module):
    def __init__(self, vocab_size: int, n_classes: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab_size, 16)
        self.cells = nn.GRU(16, 16, batch_first=True)
        self.head = nn.Linear(16, n_classes)

    def forward(self, tokens):
        return self.head(self.cells(self.table(tokens))[0])


def recurrent(vocab_size: int, n_classes: int) -> nn.Module:
    return Recurrent(vocab_size, n_classes)
'''

STUDIES = {"parts": PARTS, "ways": WAYS, "own": OWN}

Key = tuple[Any, ...]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("other", type=Path, help="another checkout")
    parser.add_argument("--python", type=Path, help="its Python; by default that of its .venv")
    parser.add_argument("--only", choices=STUDIES, help="this study alone")
    given = parser.parse_args()
    own = given.other / ".venv/bin/python"
    other = given.python or (own if own.exists() else Path(sys.executable))
    wrong = 0
    for name in [given.only] if given.only else STUDIES:
        sides = [
            stored(name, checkout.resolve(), python)
            for checkout, python in ((HERE, Path(sys.executable)), (given.other, other))
        ]
        wrong += compare(name, *sides)
    return int(wrong > 0)


def stored(name: str, checkout: Path, python: Path) -> dict[str, dict[Key, Any]]:
    """Run a study in a checkout; what it stored."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "study.yaml").write_text(STUDIES[name], encoding="utf-8")
        (here / "parts.py").write_text(PLUGIN, encoding="utf-8")
        words = ("study.yaml", "--workers", "1", "--threads", "1", "--storage", "sqlite:///it.db")
        paths = os.pathsep.join([str(checkout), str(here)])
        done = subprocess.run(
            [str(python), "-m", "studies.run", *words],
            cwd=here,
            env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{checkout}: {name} ended with {done.returncode}\n{done.stderr}")
        return read(here / "it.db")


def read(file: Path) -> dict[str, dict[Key, Any]]:
    """Everything measured in a database, by what names it; nothing but SQL is used."""
    with sqlite3.connect(file) as database:
        runs = dict(_runs(database))
        return {
            "runs": {key: told for key, told in runs.values()},
            "scores": dict(_scores(database, runs)),
            "curves": {
                (*runs[run][0], step, metric): bits(value)
                for run, step, metric, value in database.execute(
                    "SELECT run_id, step, metric, value FROM es_curves"
                )
            },
        }


def _runs(database: sqlite3.Connection) -> Iterator[tuple[int, tuple[Key, Any]]]:
    """Each run with its name and how it ended; settings of tuning are told apart by their order."""
    seen: Counter[Key] = Counter()
    query = "SELECT id, task, arm, phase, seed, status, parameters, steps FROM es_runs ORDER BY id"
    for number, *cell, status, parameters, steps in database.execute(query):
        key = tuple(cell)
        yield number, ((*key, seen[key]), (status, parameters, steps))
        seen[key] += 1


def _scores(
    database: sqlite3.Connection, runs: Mapping[int, tuple[Key, Any]]
) -> Iterator[tuple[Key, Any]]:
    columns = [row[1] for row in database.execute("PRAGMA table_info(es_scores)")]
    imputed = "imputed" if "imputed" in columns else "0"
    names = "run_id, split, length, metric, bin, n, correct, value, status"
    for row in database.execute(f"SELECT {names}, {imputed} FROM es_scores"):
        run, *place, n, correct, value, status, filled = row
        if filled:
            place[2] = f"{place[2]} (imputed)"
        yield (*runs[run][0], *place), (n, correct, bits(value), status)


def bits(value: float | None) -> str | None:
    """The 64 bits of a number."""
    return None if value is None else struct.pack(">d", value).hex()


def compare(name: str, here: Mapping[str, Any], there: Mapping[str, Any]) -> int:
    """Print how two databases differ; return in how many places."""
    wrong: list[str] = []
    for kind in ("runs", "scores", "curves"):
        ours, theirs = here[kind], there[kind]
        shared = ours.keys() & theirs.keys()
        differ = [key for key in shared if ours[key] != theirs[key]]
        wrong += sorted(f"{kind} {_text(key)}: {ours[key]} and {theirs[key]}" for key in differ)
        for side, keys in (("here", ours.keys() - theirs), ("there", theirs.keys() - ours)):
            filled = [key for key in keys if kind == "scores" and _is_filled_in(key)]
            if filled:
                metrics = ", ".join(sorted({key[7] for key in filled}))
                print(f"{name}: {len(filled)} scores {side} alone, not compared: {metrics}")
            wrong += sorted(f"{kind} {_text(key)}: {side} alone" for key in keys - set(filled))
        print(f"{name}: {len(shared) - len(differ)} of {len(shared)} {kind} are the same")
    for line in wrong[:SHOWN]:
        print(f"  {line}")
    if len(wrong) > SHOWN:
        print(f"  … and {len(wrong) - SHOWN} more")
    return len(wrong)


def _is_filled_in(key: Sequence[Any]) -> bool:
    metric = str(key[7])
    return metric == "floor" or metric.endswith(" (imputed)")


def _text(key: Sequence[Any]) -> str:
    return "/".join(map(str, key))


if __name__ == "__main__":
    sys.exit(main())
