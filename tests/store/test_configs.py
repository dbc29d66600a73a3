"""Each config is stored once, and what varies in a study is known after every plan."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.orm import Session

from store import Ledger, Results, make_engine
from store.configs import flatten, leaves_of, recount, varying
from store.records import PlannedRun

MakeRun = Callable[..., PlannedRun]

leaves = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from([1.0, 0.5, "rope", ""])
trees = st.dictionaries(
    st.sampled_from("abc"),
    leaves | st.lists(leaves, max_size=2) | st.dictionaries(st.sampled_from("de"), leaves),
    max_size=3,
)
plans = st.lists(
    st.lists(st.tuples(st.sampled_from(["one", "two"]), trees), min_size=1, max_size=4), max_size=4
)


def stored(path: Path) -> dict[str, Any]:
    """Options by study and config, and constants by study, as other programs read them."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT study, config, options FROM es_configs").fetchall()
        shared = connection.execute("SELECT name, constants FROM es_studies").fetchall()
    return {
        "options": [(study, json.loads(one), json.loads(other)) for study, one, other in rows],
        "constants": {name: json.loads(text) for name, text in shared},
    }


def by_hand(configs: list[dict[str, Any]]) -> tuple[dict[int, dict[str, Any]], dict[str, Any]]:
    options = varying(dict(enumerate(configs)))
    flat = [flatten(config) for config in configs]
    names = {name for one in flat for name in one}
    return options, {name: flat[0].get(name) for name in names - options[0].keys()}


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(plans)
def test_what_varies_is_known_after_every_plan(
    template: Path, tmp_path: Path, make_run: MakeRun, plans: list[list[tuple[str, dict[str, Any]]]]
) -> None:
    path = tmp_path / "sandbox.db"
    path.write_bytes(template.read_bytes())
    ledger, number = Ledger.open(f"sqlite:///{path}"), 0
    given: dict[str, list[dict[str, Any]]] = {}
    for plan in plans:
        runs: list[PlannedRun] = []
        for study, config in plan:
            number += 1
            runs.append(make_run(number, study=study, config=config))
            if json.dumps(config, sort_keys=True) not in map(
                lambda one: json.dumps(one, sort_keys=True), given.setdefault(study, [])
            ):
                given[study].append(config)
        ledger.plan(runs)
    ledger.close()

    found = stored(path)

    for study, configs in given.items():
        options, constants = by_hand(configs)
        mine = [(config, own) for name, config, own in found["options"] if name == study]
        assert [config for config, _ in mine] == configs
        assert [typed(own) for _, own in mine] == [typed(options[n]) for n in range(len(configs))]
        known = {name: value for name, value in found["constants"][study].items()}
        assert typed({name: known.get(name) for name in constants}) == typed(constants)
        assert all(known[name] is None for name in known.keys() - constants.keys())


def typed(flat: dict[str, Any]) -> dict[str, str]:
    return {name: repr(value) for name, value in flat.items()}


def test_a_config_is_stored_once_for_all_its_seeds(
    ledger: Ledger, path: Path, make_run: MakeRun
) -> None:
    ledger.plan([make_run(seed) for seed in range(5)])
    ledger.plan([make_run(seed) for seed in range(9)])
    assert len(stored(path)["options"]) == 1
    assert stored(path)["options"][0][2] == {}


def test_runs_that_share_a_config_read_it_alike(
    ledger: Ledger, url: str, make_run: MakeRun
) -> None:
    config = {"encoder": {"d_model": 32}, "training": {"train_lengths": [2, 16]}}
    ledger.plan([make_run(seed, config=config) for seed in range(3)])
    assert [run.config for run in Results(url).runs()] == 3 * [config]


def test_options_of_two_studies_are_told_apart_by_what_each_holds_constant(
    ledger: Ledger, url: str, make_run: MakeRun
) -> None:
    for study, width in (("one", 32), ("two", 64)):
        ledger.plan(
            [
                make_run(seed, study=study, config={"d_model": width, "depth": 2, "rate": rate})
                for seed, rate in enumerate((0.1, 0.2))
            ]
        )
    engine = make_engine(url)
    with Session(engine) as session:
        assert leaves_of(session, [1, 2, 3, 4]) == {
            1: {"d_model": 32, "rate": 0.1},
            2: {"d_model": 32, "rate": 0.2},
            3: {"d_model": 64, "rate": 0.1},
            4: {"d_model": 64, "rate": 0.2},
        }
        assert leaves_of(session, [3, 4]) == {3: {"rate": 0.1}, 4: {"rate": 0.2}}
    engine.dispose()


def test_what_varies_is_worked_out_anew_when_asked(
    ledger: Ledger, url: str, path: Path, make_run: MakeRun
) -> None:
    ledger.plan(
        [make_run(seed, config={"rate": 0.1, "depth": depth}) for seed, depth in enumerate((1, 2))]
    )
    engine = make_engine(url)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM es_runs WHERE seed = 1")
        connection.execute("DELETE FROM es_configs WHERE id = 2")
    with Session(engine) as session, session.begin():
        recount(session, "reach")
    engine.dispose()
    assert stored(path) == {
        "options": [("reach", {"rate": 0.1, "depth": 1}, {})],
        "constants": {"reach": {"rate": 0.1, "depth": 1}},
    }
