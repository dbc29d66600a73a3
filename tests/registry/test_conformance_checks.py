"""What promises compare with: no number that is lost passes for an equal one."""

import math

import pytest
import torch

from registry.conformance.checks import Broken, require_same
from tests.messages import Messages


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("place", ["found", "expected", "both"])
def test_a_lost_number_is_equal_to_nothing(place: str, value: float) -> None:
    found, expected = torch.zeros(3), torch.zeros(3)
    if place != "expected":
        found[1] = value
    if place != "found":
        expected[1] = value
    with pytest.raises(Broken, match="states"):
        require_same(found, expected, "states")
    if place != "both":
        with pytest.raises(AssertionError):
            torch.testing.assert_close(found, expected)


def test_tensors_of_other_shapes_are_not_the_same(messages: Messages) -> None:
    with messages.raises(Broken):
        require_same(torch.zeros(1, 3), torch.zeros(3), "states")
    require_same(torch.zeros(3) + 1e-10, torch.zeros(3), "states")
