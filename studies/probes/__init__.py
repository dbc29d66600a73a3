"""Probes: what can be looked at in a model before, during and after training, one file a probe.

`probes` lists them without importing torch; a config chooses them by `evaluation.probes`.
"""

from typing import TYPE_CHECKING

from registry.registry import Registry
from variants.faces import face

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

__getattr__, __dir__ = face(__name__, {"probe": ["Probe", "ProbeContext", "Scene"]})
