"""Each config once, and which of its options vary within a study.

A study keeps the options that all its configs share (`constants`); each config keeps the others
(`options`). So questions read a few short values, never whole configs. Both are brought up to date
in the transaction that brings a new config.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.orm import Session

from store.database import MOST_VALUES, chunks
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
    found: dict[int, tuple[str, dict[str, Any]]] = {}
    wanted = set(config_ids)
    query = select(ConfigRow.id, ConfigRow.study, ConfigRow.options)
    # Many ids in a statement cost more than the rows that nobody wants.
    for part in chunks(wanted) if len(wanted) <= MOST_VALUES else [[]]:
        rows = session.execute(query.where(ConfigRow.id.in_(part)) if part else query)
        found.update({row[0]: (row[1], row[2]) for row in rows if row[0] in wanted})
    studies = {study for study, _ in found.values()}
    constants = session.execute(select(StudyRow.name, StudyRow.constants))
    shared = {study: own or {} for study, own in constants if study in studies}
    if len(studies) == 1:
        return {number: options for number, (_, options) in found.items()}
    names = {name for flat in shared.values() for name in flat}
    apart = {
        name for name in names if len({option_key(flat, name) for flat in shared.values()}) > 1
    }
    kept = {
        study: {name: value for name, value in flat.items() if name in apart}
        for study, flat in shared.items()
    }
    lost = sorted(studies - set(kept))
    if lost:
        raise StoreError(
            f"configs refer to the study {lost[0]!r}, which is not there; "
            "`python -m store check` says what is damaged"
        )
    return {number: {**kept[study], **options} for number, (study, options) in found.items()}


def constants_of(session: Session, study: str) -> dict[str, Any] | None:
    """Return the options that all configs of a study share; None before the first config."""
    return session.scalars(select(StudyRow.constants).where(StudyRow.name == study)).one()


def recount(session: Session, study: str) -> None:
    """Work out anew what varies within a study, after configs were removed from it."""
    rows = session.execute(
        select(ConfigRow.id, ConfigRow.config).where(ConfigRow.study == study)
    ).all()
    leaves = {number: flatten(config) for number, config in rows}
    names = {name for flat in leaves.values() for name in flat}
    vary = {name for name in names if len({option_key(f, name) for f in leaves.values()}) > 1}
    for number, flat in leaves.items():
        change = update(ConfigRow).where(ConfigRow.id == number)
        session.execute(change.values(options=_of(flat, vary)))
    first = next(iter(leaves.values()), None)
    _set_constants(session, study, None if first is None else _without(first, vary))


def _known(session: Session, study: str, digests: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in chunks(digests):
        query = select(ConfigRow.hash, ConfigRow.id).where(
            ConfigRow.study == study, ConfigRow.hash.in_(part)
        )
        found.update({digest: number for digest, number in session.execute(query)})
    return found


def _let_vary(session: Session, study: str, fresh: Mapping[str, dict[str, Any]]) -> set[str]:
    """Return the options that vary once these configs join; older configs are brought in line."""
    locked = select(StudyRow.constants).where(StudyRow.name == study).with_for_update()
    constants = session.scalars(locked).one()
    flats = list(fresh.values())
    if constants is None:
        constants = dict(flats[0])
    query = select(ConfigRow.options).where(ConfigRow.study == study).limit(1)
    varied = set(session.scalars(query).one_or_none() or {})
    names = {name for flat in flats for name in flat} - varied
    unlike = {
        name
        for name in names | set(constants)
        if any(option_key(flat, name) != option_key(constants, name) for flat in flats)
    }
    if unlike:
        _widen(session, study, unlike)
    _set_constants(session, study, _without(constants, unlike))
    return varied | unlike


def _widen(session: Session, study: str, names: set[str]) -> None:
    rows = session.execute(
        select(ConfigRow.id, ConfigRow.config, ConfigRow.options).where(ConfigRow.study == study)
    ).all()
    change = update(ConfigRow).where(ConfigRow.__table__.c.id == bindparam("own"))
    wider = [
        {"own": number, "wider": {**options, **_of(flatten(config), names)}}
        for number, config, options in rows
    ]
    if wider:
        kind = ConfigRow.__table__.c.options.type
        session.connection().execute(change.values(options=bindparam("wider", type_=kind)), wider)


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
            inner = cast("dict[str, Any]", value)
            leaves.update(flatten(inner, f"{prefix}{key}."))
        else:
            leaves[prefix + key] = value
    return leaves


def varying(configs: Mapping[int, Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return, for each id, the options that are not the same in every one of the configs.

    An option that a config lacks counts as None there.
    """
    leaves = {key: flatten(config) for key, config in configs.items()}
    names = sorted({name for flat in leaves.values() for name in flat})
    kept = [name for name in names if len({option_key(flat, name) for flat in leaves.values()}) > 1]
    return {key: {name: flat.get(name) for name in kept} for key, flat in leaves.items()}


def option_key(flat: Mapping[str, Any], name: str) -> str:
    """Return what tells two values of an option apart: 1, 1.0 and True are three values."""
    value = flat.get(name)
    return f"{type(value).__name__}:{value!r}"
