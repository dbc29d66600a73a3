"""The packages give what they promise, and no sooner than it is asked for."""

import doctest
import importlib
import subprocess
import sys

import pytest

KINDS = ("positions", "feedforwards", "norms", "norm_placements", "masks", "attentions")
PACKAGES = ["variants"] + [f"variants.{kind}" for kind in (*KINDS, "readouts", "initializers")]


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_that_a_package_offers_is_there(name: str) -> None:
    package = importlib.import_module(name)
    assert package.__all__
    for offered in package.__all__:
        assert getattr(package, offered) is not None


def test_importing_the_packages_does_not_import_torch() -> None:
    program = f"import sys, {', '.join(PACKAGES)}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


MODULES = [
    *("blocks", "causal", "dilated", "documents", "global_tokens", "mask"),
    *("prefix", "random_blocks", "window"),
]


@pytest.mark.parametrize("name", MODULES)
def test_the_drawings_in_the_documentation_of_masks_are_right(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"variants.masks.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
