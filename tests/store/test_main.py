"""The command line as a process: it starts lightly and lives with pipes."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from store import Ledger
from store.records import PlannedRun

MakeRun = Callable[..., PlannedRun]
ROOT = Path(__file__).resolve().parents[2]


def run_python(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, text=True, capture_output=True, check=False
    )


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from store.__main__ import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit as exit:\n    assert exit.code == 0\n"
        "heavy = {'sqlalchemy', 'pandas', 'numpy', 'scipy', 'alembic', 'torch', 'optuna'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)\n"
    )
    done = run_python("-c", script)
    assert (done.returncode, done.stderr) == (0, "")


def test_reading_needs_neither_pandas_nor_alembic(
    ledger: Ledger, url: str, make_run: MakeRun
) -> None:
    ledger.plan([make_run()])
    script = (
        "import sys\n"
        "from store.__main__ import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit as exit:\n    assert exit.code == 0, exit.code\n"
        "assert not {'pandas', 'alembic', 'torch', 'optuna'} & set(sys.modules)\n"
    )
    done = run_python("-c", script, "runs", "--storage", url, "--format", "csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 2


def test_a_reader_that_leaves_is_no_error(ledger: Ledger, url: str, make_run: MakeRun) -> None:
    ledger.plan([make_run(seed) for seed in range(1000)])
    command = f'"{sys.executable}" -m store runs --format json --storage "{url}" | head -n 1'
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("[\n", "", 0)


def test_a_pipe_gets_whole_lines(ledger: Ledger, url: str, make_run: MakeRun) -> None:
    ledger.plan([make_run(study="s" * 300)])
    done = run_python("-m", "store", "runs", "--storage", url)
    assert "s" * 300 in done.stdout
    assert len(done.stdout.splitlines()) == 3


@pytest.mark.parametrize("rows", [9000, 2000])
def test_ctrl_c_ends_a_long_query(ledger: Ledger, url: str, rows: int) -> None:
    """The first rows are printed; the last one would never come."""
    query = (
        f"with recursive few(i) as (select 1 union all select i + 1 from few limit {rows}), "
        "endless(i) as (select 1 union all select i + 1 from endless) "
        "select i from few union all select count(*) from endless"
    )
    words = ["-m", "store", "sql", query, "--format", "csv", "--storage", url]
    with subprocess.Popen(
        [sys.executable, *words],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "i\n"
        process.send_signal(signal.SIGINT)
        told = process.stderr.read()
        process.stdout.read()
    assert (process.returncode, told) == (130, "stopped\n")
