"""What else than positions decides whether an encoder extrapolates: one YAML file an axis."""

from pathlib import Path

from studies.experiment.collection import Collection

AXES = Collection(Path(__file__).parent, "axis", "studies.extrapolation --axis")
