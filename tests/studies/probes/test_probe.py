"""Looking costs nothing where nobody looks, and leaves nothing behind where somebody did."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from studies.probes import probes
from studies.training.execute import execute
from studies.training.settings import check_run, probe_of
from tests.studies.probes.contexts import context

HOOKS = [name for name in dir(nn.Module) if name.startswith("register_") and "hook" in name]


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hooks that are registered from here on."""
    found: list[str] = []

    def noting(owner: Any, name: str) -> None:
        register = getattr(owner, name)

        def note(self: Any, *inputs: Any, **options: Any) -> Any:
            found.append(name)
            return register(self, *inputs, **options)

        monkeypatch.setattr(owner, name, note)

    for name in HOOKS:
        noting(nn.Module, name)
    noting(Tensor, "register_hook")
    return found


def run(probe_names: list[str]) -> Any:
    made = context()
    roots = made.config.plain()
    training = {**roots["training"], "steps": 3, "batch_size": 4}
    evaluation = {**roots["evaluation"], "probes": probe_names}
    return execute(
        check_run({**roots, "training": training, "evaluation": evaluation}), 0, torch.device("cpu")
    )


def test_a_run_without_probes_registers_no_hook(hooks: list[str]) -> None:
    run([])
    assert hooks == []


def test_the_hooks_of_a_probe_are_seen_here(hooks: list[str]) -> None:
    run(["activation_scale"])
    assert "register_forward_hook" in hooks


def test_a_run_without_probes_has_the_numbers_of_one_with_them() -> None:
    plain, looked = run([]), run(["gradient_norms", "activation_scale", "attention"])
    names = {one.metric for one in plain.scores}
    assert [one for one in looked.scores if one.metric in names] == plain.scores
    curves = {one.metric for one in plain.curves}
    assert [one for one in looked.curves if one.metric in curves] == plain.curves
    for one, other in zip(plain.model.parameters(), looked.model.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("name", sorted(probes))
def test_a_probe_leaves_no_hook_and_no_gradient_behind(name: str) -> None:
    made = context(position="learned")
    list(probe_of(check_run({"evaluation": {"probes": [name]}}).evaluation.probes[0]).measure(made))
    for module in made.model.modules():
        kept = [value for key, value in vars(module).items() if key.endswith("_hooks")]
        assert not any(kept), (name, type(module).__name__)
    assert all(one.grad is None for one in made.model.parameters())
