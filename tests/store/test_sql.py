"""SQL as typed reads everything and changes nothing, for certain."""

import hashlib
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from store import Ledger, StoreError
from store.sql import read_sql
from tests.messages import Messages


def ask(url: str, query: str) -> tuple[list[str], list[tuple[object, ...]]]:
    with read_sql(url, query) as (columns, rows):
        return columns, [tuple(row) for row in rows]


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("select 1 as one, 2 as one", ["one", "one_2"]),
        ("with x(a) as (values (1), (2)) select sum(a) as s from x", ["s"]),
        ("select count(*) as n from results", ["n"]),
        ("pragma table_info(es_runs)", ["cid", "name", "type", "notnull", "dflt_value", "pk"]),
        ("select json_extract('{\"a\": 3}', '$.a') as a;", ["a"]),
    ],
)
def test_questions_are_answered(ledger: Ledger, url: str, query: str, columns: list[str]) -> None:
    assert ask(url, query)[0] == columns


@pytest.mark.parametrize(
    "query",
    [
        "insert into es_studies(name, created_at) values ('x', 'y')",
        "update es_runs set arm = 'x'",
        "delete from es_runs",
        "drop table es_runs",
        "create table x(a)",
        "create temp table x(a)",
        "attach '{folder}/new.db' as other",
        "attach ':memory:' as other",
        "pragma user_version = 3",
        "pragma journal_mode = delete",
        "pragma query_only = off",
        "pragma writable_schema = on",
        "vacuum into '{folder}/new.db'",
        "reindex",
        "begin immediate",
        "commit",
        "savepoint x",
        "select load_extension('x')",
        "select 1; delete from es_runs",
        "with x as (select 1) delete from es_runs",
        "insert into es_runs select * from es_runs returning *",
        "",
        "-- nothing",
        "selec 1",
        "select nosuch from es_runs",
    ],
)
def test_anything_more_is_refused(
    messages: Messages, ledger: Ledger, url: str, path: Path, query: str
) -> None:
    ledger.close()
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    with messages.raises(StoreError):
        ask(url, query.format(folder=path.parent))
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert not (path.parent / "new.db").exists()


def test_a_ctrl_c_that_something_swallows_ends_the_query_all_the_same(
    ledger: Ledger, url: str
) -> None:
    # A row is worked out while the one before is given out.
    long = (
        "with recursive n(i) as (select 1 union all select i + 1 from n limit 3000000) "
        "select 0 union all select 0 union all select count(*) from n"
    )

    def ask_and_lose_ctrl_c() -> None:
        with read_sql(url, long) as (_, rows):
            next(rows)
            with suppress(KeyboardInterrupt):  # as a finalizer does
                signal.raise_signal(signal.SIGINT)
            list(rows)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        ask_and_lose_ctrl_c()
    assert signal.getsignal(signal.SIGINT) is before


def test_rows_are_read_as_they_are_asked_for(ledger: Ledger, url: str) -> None:
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n"
    with read_sql(url, endless) as (_, rows):
        assert [next(rows)[0] for _ in range(3)] == [1, 2, 3]
