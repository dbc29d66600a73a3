"""The command line prints rows on stdout, and one line on stderr when it cannot."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from store import Ledger
from store.__main__ import command_line
from store.output import telling
from store.records import PlannedRun
from tests.messages import Messages

MakeRun = Callable[..., PlannedRun]
ROOT = Path(__file__).resolve().parents[2]


def call(*words: str) -> Result:
    return CliRunner().invoke(command_line(), list(words))


@pytest.fixture
def filled(ledger: Ledger, make_run: MakeRun, url: str) -> str:
    """Three runs: two done, one failed for a reason with brackets and a bar."""
    environment = ledger.environment({"python": "3.11", "packages": {"torch": "2.13.0"}})
    ids = ledger.plan(
        [
            make_run(
                seed,
                arm=arm,
                environment_id=environment,
                provenance={"commit": "abc123"},
                config={"encoder": {"position": {"name": arm}}, "training": {"steps": 10}},
            )
            for seed, arm in enumerate(("rope", "alibi", "none"))
        ]
    )
    ledger.describe_study("reach", "How far?")
    score = {"split": "test", "metric": "accuracy", "n": 4, "correct": 1}
    for _ in range(2):
        claim = ledger.claim("w", ids)
        assert claim is not None
        value = 0.25 * (1 + claim.run.seed)
        ledger.finish(
            claim,
            "done",
            scores=[
                {**score, "length": 8, "value": value},
                {**score, "length": 64, "value": float("nan")},
            ],
            curves=[{"step": step, "metric": "loss", "value": 1 / step} for step in (1, 2)],
        )
    claim = ledger.claim("w", ids)
    assert claim is not None
    ledger.finish(claim, "failed", reason="[red]broke[/red] | at\nstep 3")
    return url


def test_runs_are_a_table(filled: str) -> None:
    result = call("runs", "--storage", filled)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split()[:4] == ["id", "study", "task", "arm"]
    assert "[red]broke[/red] | at step 3" in lines[-1]
    assert len(lines) == 5


def test_json_is_one_array_with_equal_keys(filled: str) -> None:
    rows = json.loads(call("scores", "--storage", filled, "--format", "json").stdout)
    assert len(rows) == 4
    assert {tuple(row) for row in rows} == {tuple(rows[0])}
    assert rows[1]["value"] is None
    assert rows[0]["encoder.position.name"] == "rope"
    runs = json.loads(call("runs", "--storage", filled, "--format", "json").stdout)
    assert runs[0]["config"]["training"] == {"steps": 10}
    assert runs[0]["created_at"].endswith("+00:00")


def test_csv_holds_every_field(filled: str) -> None:
    text = call("runs", "--storage", filled, "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["arm"] for row in rows] == ["rope", "alibi", "none"]
    assert json.loads(rows[0]["config"])["training"] == {"steps": 10}
    assert rows[0]["reason"] == ""
    assert rows[2]["reason"].endswith("at\nstep 3")


def test_markdown_escapes_bars(filled: str) -> None:
    text = call("runs", "--storage", filled, "--format", "markdown").stdout
    lines = text.splitlines()
    assert lines[1].startswith("| --- |")
    assert "broke[/red] \\| at step 3 |" in lines[-1]


def test_rows_are_sorted_and_limited(filled: str) -> None:
    words = ("--storage", filled, "--format", "json", "--sort", "-value", "--limit", "3")
    rows = json.loads(call("scores", *words).stdout)
    assert [row["value"] for row in rows] == [0.5, 0.25, None]


def test_options_choose(filled: str) -> None:
    where = 'position in ("rope","alibi") and length >= 8 and metric == "accuracy" and value > 0.3'
    rows = json.loads(
        call("scores", "--storage", filled, "--format", "json", "--where", where).stdout
    )
    assert [row["arm"] for row in rows] == ["alibi"]
    words = ("--study", "reach", "--task", "copy", "--arm", "rope", "--phase", "all")
    rows = json.loads(call("runs", "--storage", filled, "--format", "json", *words).stdout)
    assert [row["arm"] for row in rows] == ["rope"]


def test_nothing_found_is_an_empty_table(filled: str) -> None:
    tuned = ("--storage", filled, "--phase", "tune")
    assert json.loads(call("scores", *tuned, "--format", "json").stdout) == []
    assert call("scores", *tuned, "--format", "csv").stdout.startswith("run_id,study")
    assert call("scores", *tuned).exit_code == 0


def test_studies_count_their_runs(filled: str) -> None:
    (row,) = json.loads(call("studies", "--storage", filled, "--format", "json").stdout)
    assert (row["study"], row["done"], row["failed"], row["planned"]) == ("reach", 2, 1, 0)
    assert row["description"] == "How far?"


def test_show_prints_all_of_a_run(filled: str) -> None:
    text = call("show", "1", "--storage", filled).stdout
    for part in (
        *("status: done", "encoder.position.name: rope", "commit: abc123"),
        *("packages.torch: 2.13.0", "accuracy", "loss"),
    ):
        assert part in text
    (report,) = json.loads(call("show", "1", "--storage", filled, "--format", "json").stdout)
    assert report["curves"] == [
        {"metric": "loss", "points": 2, "first": 1.0, "last_step": 2, "last": 0.5}
    ]
    assert report["environment"]["python"] == "3.11"
    assert "scores: none" in call("show", "3", "--storage", filled).stdout


@pytest.mark.parametrize(
    "words",
    [
        ["show", "99"],
        ["show", "1", "--format", "csv"],
        ["runs", "--format", "yaml"],
        ["runs", "--study", "raech"],
        ["runs", "--arm", "ropee"],
        ["runs", "--task", "kopy"],
        ["runs", "--phase", "test"],
        ["runs", "--sort", "sede"],
        ["runs", "--sort", "config"],
        ["runs", "--limit", "-1"],
        ["scores", "--where", "lenth > 3"],
        ["scores", "--where", "("],
        ["scores", "--where", "1 == 1; DROP TABLE es_runs"],
    ],
)
def test_bad_input_is_one_line_on_stderr(messages: Messages, filled: str, words: list[str]) -> None:
    result = call(*words, "--storage", filled)
    assert result.exit_code == 2
    assert result.stdout == ""
    messages(result.stderr)
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1


def storages(folder: Path) -> dict[str, str]:
    (folder / "text.db").write_text("hello, this is not a database")
    (folder / "empty.db").touch()
    return {
        f"sqlite:///{folder}/none.db": "does not exist",
        f"sqlite:///{folder}": "is a directory",
        f"sqlite:///{folder}/text.db": "is not a SQLite database",
        f"sqlite:///{folder}/empty.db": "holds no encoder-sandbox tables",
        "sandbox.db": "is not a database URL",
    }


@pytest.mark.parametrize("command", [["runs"], ["scores"], ["studies"], ["show", "1"], ["upgrade"]])
def test_bad_storage_is_one_line_on_stderr(tmp_path: Path, command: list[str]) -> None:
    for storage, message in storages(tmp_path).items():
        if command == ["upgrade"] and "none" in storage:
            continue
        result = call(*command, "--storage", storage)
        assert (result.exit_code, result.stdout) == (2, "")
        assert message in result.stderr
        assert result.stderr.count("\n") == 1


def test_an_upgrade_makes_no_file(tmp_path: Path) -> None:
    result = call("upgrade", "--storage", f"sqlite:///{tmp_path}/none.db")
    assert result.exit_code == 2
    assert "does not exist" in result.stderr
    assert not (tmp_path / "none.db").exists()


def test_an_empty_database_has_no_runs_to_show(
    messages: Messages, ledger: Ledger, url: str
) -> None:
    result = call("show", "1", "--storage", url)
    messages(result.stderr)


def test_a_table_leaves_out_what_task_and_arm_tell_already() -> None:
    always = {"run_id": 1, "study": "s", "length": 8, "metric": "skill", "value": 0.5, "bin": None}
    rows = [
        {**always, "task": "t", "arm": arm, "seed": seed, "position.name": arm, "rate": seed}
        for arm in ("rope", "alibi")
        for seed in (0, 1)
    ]
    rows = [{**row, "training.rate": row.pop("rate")} for row in rows]

    shown = telling(rows, list(rows[0]))

    assert set(rows[0]) - set(shown) == {"study", "bin", "position.name"}
