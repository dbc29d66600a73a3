"""A stored model comes back as it was scored, or it is said why it does not."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import studies
from registry import ConfigError, isolated
from registry.plugins import load as load_plugin
from store import Results, StoreError
from studies.experiment.resolve import resolve
from studies.training.execute import execute
from studies.training.settings import check_run
from tests.messages import Messages
from tests.studies.stored_models import Desk, copied, done_in, draft, plan

PART = """
from registry import register
from variants.positions import Sinusoidal

@register
class Moving(Sinusoidal):
    name = "moving"
"""
TOKENS = torch.tensor([[1, 2, 3, 1, 2], [3, 3, 1, 2, 2]])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A database with two seeds of each of two arms, with weights."""
    return done_in(tmp_path_factory.mktemp("made"))


@pytest.fixture
def url(made: Desk, tmp_path: Path) -> str:
    """The same, to be spoilt."""
    return copied(made, tmp_path)


def files(url: str) -> list[Path]:
    home = Path(url.removeprefix("sqlite:///")).parent
    return [home / model.path for model in Results(url).models()]


def change(url: str, statement: str) -> None:
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute(statement)
    connection.close()


def test_a_model_comes_back_with_the_weights_that_its_run_ended_with(made: Desk) -> None:
    run = Results(made.url).run(2)

    model = studies.load(run, storage=made.url)

    trained = execute(check_run(run.config), run.seed, torch.device("cpu")).model
    assert trained is not None
    assert not model.training
    assert model(TOKENS).logits.equal(trained.eval()(TOKENS).logits)


def test_every_seed_and_arm_has_weights_of_its_own(made: Desk) -> None:
    answers = [studies.load(number, storage=made.url)(TOKENS).logits for number in (1, 2, 3, 4)]

    assert len({tuple(logits.flatten().tolist()) for logits in answers}) == 4


def test_a_module_of_ones_own_comes_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    gru = {"gru": {"model": {"name": "examples.gru:build", "d_model": 4}}}
    [run] = desk.do(plan(arms=[gru], seeds=1, also_differs=["model"]))

    model = studies.load(run.id, storage=desk.url)

    trained = execute(check_run(run.config), run.seed, torch.device("cpu")).model
    assert trained is not None
    assert type(model).__name__ == "Gru"
    assert model(TOKENS).equal(trained.eval()(TOKENS))


def test_the_precision_of_a_run_is_kept(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    panel = {"task": {"name": "shift", "k": 1, "alphabet": 3}, "training": {"dtype": "float64"}}
    [run] = desk.do(plan(arms=["rope"], seeds=1, panels=[panel]))

    model = studies.load(run.id, storage=desk.url)

    assert {weight.dtype for weight in model.parameters()} == {torch.float64}


def test_tuning_runs_and_runs_without_the_option_keep_no_weights(
    messages: Messages, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, save_models=False)
    [run] = desk.do(plan(arms=["rope"], seeds=1))

    assert not desk.folder.exists()
    with messages.raises(StoreError):
        studies.load(run.id, storage=desk.url)


@pytest.mark.parametrize("lost", ["before the file is written", "while it is stored"])
def test_a_worker_that_lost_its_run_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    desk = Desk(tmp_path)
    method = "renew" if lost.startswith("before") else "finish"
    monkeypatch.setattr(desk.ledger, method, lambda claim, *_, **__: False)

    desk.do(plan(arms=["rope"], seeds=1))

    assert list(desk.folder.glob("*")) == []


def test_a_flipped_bit_is_noticed(messages: Messages, url: str) -> None:
    file = files(url)[0]
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)

    with messages.raises(StoreError):
        studies.load(1, storage=url)


def test_a_file_that_is_gone_is_named(messages: Messages, url: str) -> None:
    files(url)[0].unlink()

    with messages.raises(StoreError):
        studies.load(1, storage=url)


def test_the_weights_of_another_run_are_refused_though_their_hash_fits(
    messages: Messages, url: str
) -> None:
    """Two rows whose files were exchanged: each file is what its row says, of another run."""
    change(url, "DELETE FROM es_models WHERE run_id = 1")
    change(url, "UPDATE es_models SET run_id = 1 WHERE run_id = 2")

    with messages.raises(StoreError):
        studies.load(1, storage=url)


def test_a_part_whose_source_has_changed_is_named(messages: Messages, url: str) -> None:
    change(url, "UPDATE es_components SET source_hash = 'old' WHERE name = 'rope'")

    with messages.raises(StoreError):
        studies.load(1, storage=url)
    assert studies.load(1, storage=url, despite_changes=True) is not None
    assert studies.load(3, storage=url) is not None


def test_a_plug_in_may_have_moved_but_not_changed(messages: Messages, tmp_path: Path) -> None:
    file, desk = tmp_path / "mine.py", Desk(tmp_path)
    file.write_text(PART)
    with isolated():
        plugin = load_plugin(str(file))
        made = resolve(replace(draft(arms=["moving"], seeds=1), plugins=(vars(plugin),)))
        [run] = desk.do(made)
    moved = file.rename(tmp_path / "elsewhere.py")

    with messages.raises(ConfigError):
        studies.load(run, storage=desk.url)
    load_plugin(str(moved))
    assert studies.load(run, storage=desk.url)(TOKENS).logits.isfinite().all()
    moved.write_text(PART + "MORE = 1\n")
    with messages.raises(StoreError):
        studies.load(run, storage=desk.url)


def test_weights_that_do_not_fit_the_model_are_refused(url: str) -> None:
    row = sqlite3.connect(url.removeprefix("sqlite:///"))
    [(number, text)] = row.execute("SELECT id, config FROM es_configs LIMIT 1").fetchall()
    config = json.loads(text)
    config["encoder"]["n_layers"] = 2
    row.execute("UPDATE es_configs SET config = ? WHERE id = ?", (json.dumps(config), number))
    row.commit()
    row.close()

    with pytest.raises(StoreError, match="the weights of run 1 do not fit its model"):
        studies.load(1, storage=url)


def test_a_run_that_is_not_there_is_named(messages: Messages, url: str) -> None:
    with messages.raises(StoreError):
        studies.load(99, storage=url)


def test_what_is_no_run_is_told(messages: Messages, url: str) -> None:
    with messages.raises(TypeError):
        studies.load("one", url)  # pyright: ignore[reportArgumentType]
