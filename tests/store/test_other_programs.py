"""Other programs read the same file: datasette its views, optuna-dashboard its trials."""

import asyncio
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server

import optuna
import pytest

from store import Ledger
from store.records import PlannedRun

MakeRun = Callable[..., PlannedRun]
BROWSER = Path("/usr/bin/chromium")


@pytest.fixture
def filled(ledger: Ledger, url: str, make_run: MakeRun) -> str:
    """A confirming run with a score, and an Optuna study of two trials in the same file."""
    (number,) = ledger.plan([make_run()])
    claim = ledger.claim("w", [number])
    assert claim is not None
    score = {"split": "test", "length": 8, "metric": "accuracy", "n": 4, "value": 0.25}
    ledger.finish(claim, "done", scores=[score])
    ledger.close()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(study_name="reach/copy/rope/ab12", storage=url)
    for rate, nll in ((0.001, 0.5), (0.003, 0.25)):
        trial = study.ask({"training.learning_rate": optuna.distributions.FloatDistribution(0, 1)})
        trial.set_user_attr("rate", rate)
        study.tell(trial, nll)
    return url


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_datasette_serves_the_results(filled: str, path: Path) -> None:
    from datasette.app import Datasette

    async def read() -> list[dict[str, object]]:
        served = Datasette([str(path)])
        answer = await served.client.get("/sandbox/results.json?_shape=array")
        assert answer.status_code == 200
        return answer.json()

    (row,) = asyncio.run(read())
    assert (row["arm"], row["length"], row["metric"], row["value"]) == ("rope", 8, "accuracy", 0.25)
    assert row["superseded"] == 0
    assert row["options"] == "{}"


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def dashboard(filled: str) -> Iterator[str]:
    """The address of optuna-dashboard, which serves the file on this machine alone."""
    from optuna_dashboard import wsgi

    storage = optuna.storages.RDBStorage(filled)
    server = make_server("127.0.0.1", 0, wsgi(storage), handler_class=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/dashboard/"
    server.shutdown()
    server.server_close()
    thread.join()
    storage.remove_session()
    storage.engine.dispose()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(not BROWSER.exists(), reason="needs chromium, which .ci/run installs")
def test_the_dashboard_shows_studies_and_trials(dashboard: str, tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=str(BROWSER), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(dashboard)
        page.get_by_text("reach/copy/rope/ab12").first.wait_for()
        page.get_by_text("reach/copy/rope/ab12").first.click()
        page.wait_for_url("**/studies/1**")
        page.goto(f"{dashboard}studies/1/trials")
        page.get_by_text("Trial 1").first.wait_for()
        picture = tmp_path / "dashboard.png"
        page.screenshot(path=picture)
        browser.close()
    kept = os.environ.get("ARTIFACTS")
    if kept:
        shutil.copy(picture, Path(kept) / "dashboard.png")
    assert picture.stat().st_size > 10_000
