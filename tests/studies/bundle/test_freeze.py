"""A study as a folder that stands alone: what is in it, and that a change of anything is seen."""

import json
import shutil
import sqlite3
import subprocess
from pathlib import Path

import optuna
import pytest
from typer.testing import CliRunner, Result

from store import PlannedRun, Results
from store.maintenance import check
from studies.bundle.check import check_bundle
from studies.cli.app import app
from studies.execution.scheduler import Scheduler
from studies.execution.trials import Trials
from studies.experiment.freeze import freeze
from studies.experiment.load import Typed, load_draft
from studies.experiment.resolve import resolve
from studies.experiment.study_file import read_study
from tests.studies.stored_models import Desk, plan

STUDY = """\
name: own study
question: Does rope carry further than nothing?
variable: encoder.position
encoder: {d_model: 8, n_heads: 2, n_layers: 1, feedforward: {name: gelu, d_ff: 8}}
task: {name: shift, k: 1, alphabet: 3}
training: {steps: 2, batch_size: 4, warmup_steps: 0, train_lengths: [2, 6]}
evaluation: {test_lengths: [6, 10], examples: 12}
study:
  arms: [rope, none]
  seeds: 2
  learning_rates: [0.01, 0.1]
  hypotheses:
    - {name: further, claim: It does., arm: rope, against: none, panel: shift, lengths: [10]}
"""


def call(*words: str) -> Result:
    return CliRunner().invoke(app, ["freeze", *words])


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A study of a file of its own, tuned and confirmed with weights; and a run of another one."""
    folder = tmp_path_factory.mktemp("desk")
    file = folder / "mine.yaml"
    file.write_text(STUDY)
    study = read_study(file)
    made = resolve(load_draft(study, Typed()))
    desk, trials = Desk(folder), Trials(f"sqlite:///{folder / 'sandbox.db'}")
    scheduler = Scheduler(made, desk.ledger, trials)
    freeze(made, desk.ledger, Results(desk.url), [])
    while scheduler.unfinished():
        desk.work(scheduler.ids(), trials)
    other = PlannedRun("other", "t", "a", "tune", 0, {"training": {"learning_rate": 0.1}}, "h",
                       None, "other", 1)  # fmt: skip
    claim = desk.ledger.claim("w", desk.ledger.plan([other]))
    assert claim is not None
    name, number = trials.begin(claim.run, 1)
    desk.ledger.attach_trial(claim, name, number)
    return desk


@pytest.fixture(scope="session")
def frozen(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of that study."""
    folder = tmp_path_factory.mktemp("frozen") / "bundle"
    done = call("own study", "--out", str(folder), "--storage", desk.url)
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def bundle(frozen: Path, tmp_path: Path) -> Path:
    """The same, elsewhere, to be spoilt."""
    return shutil.copytree(frozen, tmp_path / "appendix")


def test_a_bundle_holds_everything_and_its_manifest_names_it(frozen: Path) -> None:
    names = {file.relative_to(frozen).as_posix() for file in frozen.rglob("*") if file.is_file()}
    lines = (frozen / "MANIFEST").read_text().splitlines()

    assert {line.partition("  ")[2] for line in lines} == names - {"MANIFEST"}
    assert names >= {
        *("README.md", "MANIFEST", "plan.json", "environment.json", "own_study.db"),
        *("sources/mine.yaml", "report/report.html", "report/scores.csv"),
    }
    assert len([name for name in names if name.startswith("own_study.db-models/run-")]) == 4
    configs = {name.rpartition("/")[0] for name in names if name.startswith("configs/")}
    assert configs == {"configs/shift/rope", "configs/shift/none"}
    assert not [name for name in names if name.endswith(("-wal", "-shm", ".part"))]
    summed = subprocess.run(
        ["sha256sum", "--check", "--quiet", "MANIFEST"], cwd=frozen, check=False
    )
    assert summed.returncode == 0


def test_the_database_holds_that_study_alone_with_its_trials(desk: Desk, frozen: Path) -> None:
    url = f"sqlite:///{frozen / 'own_study.db'}"

    def told(where: str) -> list[object]:
        results = Results(where)
        runs = results.runs(study="own study", phase=None)
        scores = results.scores(study="own study", phase=None)
        return [list(runs), list(scores), list(results.protocols(study="own study"))]

    assert list(Results(url).studies()) == ["own study"]
    assert told(url) == told(desk.url)
    assert check(url)[0] == []
    names = optuna.get_all_study_names(storage=f"{url}")
    assert sorted(name.rpartition("/")[0] for name in names) == [
        "own study/shift/none",
        "own study/shift/rope",
    ]


def test_the_frozen_plan_is_told_with_its_hash(desk: Desk, frozen: Path) -> None:
    [kept] = Results(desk.url).protocols(study="own study")
    told = json.loads((frozen / "plan.json").read_text())

    assert told["plan"]["files"] == {"study": str(desk.folder.parent / "mine.yaml")}
    assert [one["hash"] for one in told["frozen"]] == [kept.hash]
    assert told["frozen"][0]["protocol"]["hypotheses"][0]["name"] == "further"
    assert (
        f"before the first confirming run had begun: sha256 `{kept.hash}`"
        in (frozen / "README.md").read_text()
    )


def test_a_bundle_is_checked_wherever_it_lies(bundle: Path, desk: Desk) -> None:
    file = desk.folder.parent / "mine.yaml"
    file.rename(file.with_suffix(".away"))
    try:
        done = call("--check", str(bundle))
    finally:
        file.with_suffix(".away").rename(file)

    assert (done.exit_code, done.stderr) == (0, "")
    assert "is intact: files, database, plan and every number" in done.stdout
    assert not [file for file in bundle.rglob("*") if file.name.endswith(("-wal", "-shm"))]


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-9] ^= 1
    file.write_bytes(content)


def score(bundle: Path) -> None:
    with sqlite3.connect(bundle / "own_study.db") as connection:
        connection.execute("UPDATE es_scores SET value = value / 2 WHERE metric = 'skill'")
    connection.close()


def page(bundle: Path) -> None:
    file = bundle / "report" / "report.html"
    text = file.read_text()
    place = text.index('data-key="panel1/rope/skill/10">') + 32
    file.write_text(text[:place] + "9.99" + text[text.index("<", place) :])


def plans(bundle: Path) -> None:
    told = json.loads((bundle / "plan.json").read_text())
    told["frozen"][0]["protocol"]["seeds"] = 9
    (bundle / "plan.json").write_text(json.dumps(told))


def test_a_change_of_any_file_is_named(bundle: Path) -> None:
    weights = next((bundle / "own_study.db-models").glob("*"))
    flip(weights)
    (bundle / "report" / "scores.csv").unlink()
    (bundle / "more.txt").touch()
    page(bundle)
    plans(bundle)

    wrong = check_bundle(bundle)

    for named in (
        f"own_study.db-models/{weights.name}: checksum differs from MANIFEST",
        "report/scores.csv: listed in MANIFEST but missing",
        "more.txt: not listed in MANIFEST",
        "report/report.html: checksum differs from MANIFEST",
        "plan.json: checksum differs from MANIFEST",
        "plan.json: the plan with hash",
        "report: panel1/rope/skill/10: the page says 9.99",
        "model: model of run",
    ):
        assert [line for line in wrong if line.startswith(named)], (named, wrong)


def test_a_score_that_was_changed_is_named(bundle: Path) -> None:
    score(bundle)

    wrong = check_bundle(bundle)

    assert "own_study.db: checksum differs from MANIFEST" in wrong
    assert [line for line in wrong if line.startswith("report: panel1/rope/skill/10: the page")]


def test_a_folder_that_holds_something_is_left_alone(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")

    done = call("own study", "--out", str(tmp_path), "--storage", desk.url)

    assert done.exit_code == 2
    assert "exists and is not empty; choose a new folder" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_weights_that_were_changed_are_not_learned(desk: Desk, tmp_path: Path) -> None:
    copy = shutil.copytree(desk.folder.parent, tmp_path / "copy")
    flip(next((copy / "sandbox.db-models").glob("*")))

    storage = f"sqlite:///{copy / 'sandbox.db'}"
    done = call("own study", "--out", str(tmp_path / "new"), "--storage", storage)

    assert done.exit_code == 2
    assert "checksum mismatch" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["copy"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "usage: freeze STUDY --out DIR, or freeze --check DIR"),
        (["own study"], "usage: freeze STUDY --out DIR"),
        (["none", "--out", "new"], "no study with runs is named 'none'"),
        (["--check", "."], "is not a bundle: MANIFEST or plan.json is missing"),
    ],
)
def test_bad_input_ends_with_code_2(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)

    done = call(*words, "--storage", desk.url)

    assert (done.exit_code, done.stdout) == (2, "")
    assert told in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_study_that_is_being_done_is_not_learned(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'sandbox.db'}"
    desk = Desk(tmp_path)
    made = plan()
    scheduler = Scheduler(made, desk.ledger, Trials(url))
    scheduler.advance()
    assert desk.ledger.claim("w", scheduler.ids()) is not None

    done = call("tiny", "--out", str(tmp_path / "new"), "--storage", url)

    assert done.exit_code == 2
    assert "tiny is being done (1 running); wait for it or stop it first" in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("plan.json", b"{", "plan.json is not JSON: "),
        ("plan.json", b"\xff\xfe", "plan.json is not JSON: "),
        ("plan.json", b"[]", "plan.json is not the plan of a bundle: missing study, plan"),
        ("plan.json", b'{"study": "x"}', "plan.json is not the plan of a bundle: missing plan"),
        ("MANIFEST", b"\xff\xfe", "README.md: not listed in MANIFEST"),
    ],
)
def test_a_file_that_the_check_rests_on_may_be_anything(
    bundle: Path, name: str, content: bytes, said: str
) -> None:
    (bundle / name).write_bytes(content)
    done = call("--check", str(bundle))
    assert done.exit_code == 1
    assert said in done.output
