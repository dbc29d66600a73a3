"""Studies: what is asked, how it is run, what comes out. `load` brings back the model of a run."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from studies.training.saved_models import load

__all__ = ["load"]


def __getattr__(name: str) -> object:
    if name == "load":
        from studies.training.saved_models import load

        return load
    raise AttributeError(f"module 'studies' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
