"""The figure of effects, on verdicts whose numbers are known."""

import matplotlib.pyplot as plt
import pytest

from studies.analysis import Verdict
from studies.experiment.hypothesis import Hypothesis
from studies.report.figures import contrasts
from tests.studies.made_up import findings

SKILL = Hypothesis("far", "further", "rope", "learned", "shift", (32,), smallest_effect=0.1)
STEPS = Hypothesis(
    "soon", "sooner", "rope", "learned", "shift", (16,), "steps_to_fit", "less", 100.0
)


def drawn(*verdicts: Verdict) -> tuple[list[float], list[float], str]:
    """Where effects and the right ends of bands are, and what the axis is called."""
    figure = contrasts(findings(verdicts=list(verdicts)))
    [axes] = figure.axes
    points = [
        float(line.get_xdata()[0])  # type: ignore[arg-type,index]
        for line in axes.lines
        if line.get_marker() == "o"
    ]
    bands = [patch.get_x() + patch.get_width() for patch in axes.patches]  # type: ignore[attr-defined]
    plt.close(figure)
    return points, bands, axes.get_xlabel()


def test_shares_are_drawn_as_they_are() -> None:
    points, bands, label = drawn(Verdict(SKILL, "supported", 0.5, 0.4, 0.6))

    assert (points, bands) == ([0.5], [0.1])
    assert label.startswith("effect (")


def test_shares_beside_steps_are_drawn_in_units_of_delta() -> None:
    points, bands, label = drawn(
        Verdict(SKILL, "supported", 0.5, 0.4, 0.6),
        Verdict(STEPS, "supported", -650.0, -700.0, -600.0),
    )

    assert points == pytest.approx([5.0, -6.5])
    assert bands == pytest.approx([1.0, 1.0])
    assert label.startswith("effect in units of δ (")
