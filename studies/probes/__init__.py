"""Probes: what can be looked at in a model before, during and after training, one file a probe.

`probes` lists them without importing torch; a config chooses them by `evaluation.probes`.
"""

from typing import TYPE_CHECKING

from registry.registry import Registry

if TYPE_CHECKING:
    from studies.probes.probe import Probe, ProbeContext, Scene

__all__ = ["Probe", "ProbeContext", "Scene", "probes"]

probes = Registry(
    kind="probe",
    plural="probes",
    contract="studies.probes.probe:Probe",
    package="studies.probes",
    about="Looks into a model while it trains and after: gradients, activations, attention.",
)


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from studies.probes import probe

    return getattr(probe, name)


def __dir__() -> list[str]:
    return __all__
