"""Tables that are left as they were found."""

import sys
from collections.abc import Generator
from contextlib import contextmanager

from registry.table import INSTALLED, TABLES


@contextmanager
def isolated() -> Generator[None]:
    """Forget afterwards what is registered inside, whole tables included.

    Modules that registered it are forgotten too, so that importing them again registers again.

    >>> from registry import isolated, positions, register
    >>> from variants.positions import Position
    >>> with isolated():
    ...     mine = register(type("Mine", (Position,), {"name": "mine"}))
    ...     "mine" in positions
    True
    >>> "mine" in positions
    False
    """
    before = dict(TABLES)
    added = {kind: table.added for kind, table in before.items()}
    modules, joined = set(sys.modules), INSTALLED.joined
    try:
        yield
    finally:
        INSTALLED.joined = joined
        homes = {table.package for kind, table in TABLES.items() if kind not in before}
        TABLES.clear()
        TABLES.update(before)
        for kind, table in before.items():
            dropped = set(table.added.values()) - set(added[kind].values())
            homes |= {part.__module__ for part in dropped}
            table.added = added[kind]
        for module in homes - modules:
            sys.modules.pop(module, None)
