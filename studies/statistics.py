"""Statistics over seeds, by the name that documents and notebooks use for `studies.analysis`."""

from typing import TYPE_CHECKING, Any

from studies import analysis

if TYPE_CHECKING:
    from studies.analysis import *  # noqa: F403

EARLIER = {"ArmOutcome": "Arm", "SeedOutcome": "Seed"}
"""Names of earlier versions."""


def __getattr__(name: str) -> Any:
    return getattr(analysis, EARLIER.get(name, name))


def __dir__() -> list[str]:
    return sorted({*dir(analysis), *EARLIER})
