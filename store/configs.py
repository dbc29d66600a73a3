"""Each config once, and which of its options vary within a study.

A study keeps the options that all its configs share (`constants`); each config keeps the others
(`options`). So questions read a few short values, never whole configs. Both are brought up to date
in the transaction that brings a new config.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.orm import Session

from store.database import MOST_VALUES, rows_among
from store.encoding import fingerprint
from store.errors import StoreError
from store.models import ConfigRow, StudyRow


def add_configs(session: Session, study: str, configs: Sequence[Mapping[str, Any]]) -> list[int]:
    """Store the configs that are new to the study; return the ids of all."""
    digests = [fingerprint(config) for config in configs]
    given = dict(zip(digests, configs, strict=True))
    known = _known(session, study, given)
    fresh = {digest: flatten(config) for digest, config in given.items() if digest not in known}
    if fresh:
        names = _let_vary(session, study, fresh)
        rows = [
            {"study": study, "hash": digest, "config": given[digest], "options": _of(flat, names)}
            for digest, flat in fresh.items()
        ]
        session.execute(insert(ConfigRow), rows)
        known |= _known(session, study, fresh)
    return [known[digest] for digest in digests]


def leaves_of(session: Session, config_ids: Iterable[int]) -> dict[int, dict[str, Any]]:
    """Return the options of each config that differ from those of another, and maybe more.

    What is the same in every config of the studies at hand is left out.
    """
    wanted = set(config_ids)
    query = select(ConfigRow.id, ConfigRow.study, ConfigRow.options)
    # Many ids in a statement cost more than the rows that nobody wants.
    few = len(wanted) <= MOST_VALUES
    rows = rows_among(session, query, ConfigRow.id, wanted) if few else session.execute(query)
    found = {row[0]: (row[1], row[2]) for row in rows if row[0] in wanted}
    studies = {study for study, _ in found.values()}
    if len(studies) == 1:
        return {number: options for number, (_, options) in found.items()}
    constants = session.execute(select(StudyRow.name, StudyRow.constants))
    shared: dict[str, dict[str, Any]] = {
        study: own or {} for study, own in constants if study in studies
    }
    for lost in sorted(studies - shared.keys()):
        raise StoreError(
            f"configs refer to the study {lost!r}, which is not there; "
            "`python -m store check` says what is damaged"
        )
    apart = unlike(shared.values())
    kept = {
        study: {name: value for name, value in flat.items() if name in apart}
        for study, flat in shared.items()
    }
    return {number: {**kept[study], **options} for number, (study, options) in found.items()}


def recount(session: Session, study: str) -> None:
    """Work out anew what varies within a study, after configs were removed from it."""
    rows = session.execute(select(ConfigRow.id, ConfigRow.config).where(ConfigRow.study == study))
    leaves = {number: flatten(config) for number, config in rows}
    vary = unlike(leaves.values())
    for number, flat in leaves.items():
        change = update(ConfigRow).where(ConfigRow.id == number)
        session.execute(change.values(options=_of(flat, vary)))
    first = next(iter(leaves.values()), None)
    _set_constants(session, study, None if first is None else _without(first, vary))


def _known(session: Session, study: str, digests: Iterable[str]) -> dict[str, int]:
    query = select(ConfigRow.hash, ConfigRow.id).where(ConfigRow.study == study)
    return {row[0]: row[1] for row in rows_among(session, query, ConfigRow.hash, digests)}


def _let_vary(session: Session, study: str, fresh: Mapping[str, dict[str, Any]]) -> set[str]:
    """Return the options that vary once these configs join; older configs are brought in line."""
    locked = select(StudyRow.constants).where(StudyRow.name == study).with_for_update()
    flats = list(fresh.values())
    constants = session.scalars(locked).one()
    if constants is None:
        constants = dict(flats[0])
    query = select(ConfigRow.options).where(ConfigRow.study == study).limit(1)
    varied = set(session.scalars(query).one_or_none() or {})
    more = unlike([constants, *flats]) - varied
    if more:
        _widen(session, study, more)
    _set_constants(session, study, _without(constants, more))
    return varied | more


def _widen(session: Session, study: str, names: set[str]) -> None:
    columns = (ConfigRow.id, ConfigRow.config, ConfigRow.options)
    wider = [
        {"own": number, "wider": {**options, **_of(flatten(config), names)}}
        for number, config, options in session.execute(
            select(*columns).where(ConfigRow.study == study)
        )
    ]
    if wider:
        table = ConfigRow.__table__.c
        change = update(ConfigRow).where(table.id == bindparam("own"))
        change = change.values(options=bindparam("wider", type_=table.options.type))
        session.connection().execute(change, wider)


def _set_constants(session: Session, study: str, constants: dict[str, Any] | None) -> None:
    session.execute(update(StudyRow).where(StudyRow.name == study).values(constants=constants))


def _of(flat: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: flat.get(name) for name in sorted(names)}


def _without(flat: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in flat.items() if name not in names}


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the leaves of a nested mapping under dotted keys; lists are leaves."""
    leaves: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict) and value:
            leaves |= flatten(cast("dict[str, Any]", value), f"{prefix}{key}.")
        else:
            leaves[prefix + key] = value
    return leaves


def unlike(flats: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the options that are not the same in every one of these; one that lacks is None."""
    every = list(flats)
    names = {name for flat in every for name in flat}
    return {name for name in names if len({option_key(flat, name) for flat in every}) > 1}


def varying(configs: Mapping[int, Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return, for each id, the options that are not the same in every one of the configs.

    An option that a config lacks counts as None there.
    """
    leaves = {key: flatten(config) for key, config in configs.items()}
    names = unlike(leaves.values())
    return {key: _of(flat, names) for key, flat in leaves.items()}


def option_key(flat: Mapping[str, Any], name: str) -> str:
    """Return what tells two values of an option apart: 1, 1.0 and True are three values."""
    value = flat.get(name)
    return f"{type(value).__name__}:{value!r}"
