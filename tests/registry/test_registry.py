"""Names: what a table lists, finds, accepts and refuses."""

import subprocess
import sys
from typing import Any

import pytest

import registry
from registry import DuplicateNameError, Registry, UnknownNameError, register
from registry.registry import REGISTRIES, registry_of
from tests.messages import Messages
from variants.norms import Norm
from variants.positions import Position, RoPE

KINDS = {
    "attention": "attentions",
    "feedforward": "feedforwards",
    "initializer": "initializers",
    "mask": "masks",
    "norm": "norms",
    "norm_placement": "norm_placements",
    "position": "positions",
    "readout": "readouts",
}


def own(name: Any = "mine", base: type = Position, qualname: str = "Mine") -> type:
    return type(qualname, (base,), {"name": name, "__module__": __name__, "__qualname__": qualname})


def test_every_kind_has_a_table_under_its_plural() -> None:
    assert {kind: REGISTRIES[kind].plural for kind in KINDS} == KINDS
    for kind, plural in KINDS.items():
        assert (
            getattr(registry, plural)
            is REGISTRIES[kind]
            is registry_of(kind)
            is registry_of(plural)
        )
        assert REGISTRIES[kind].about


def test_a_table_is_a_sorted_mapping_of_names_to_classes() -> None:
    names = list(registry.positions)
    assert names == sorted(names)
    assert {"none", "sinusoidal", "learned", "rope", "alibi", "t5_bias"} <= set(names)
    assert len(registry.positions) == len(names)
    assert "rope" in registry.positions
    assert "roep" not in registry.positions
    assert registry.positions["rope"] is RoPE


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_listed_class_has_its_name_and_extends_the_contract(kind: str) -> None:
    for name, part in REGISTRIES[kind].items():
        assert part.name == name
        assert issubclass(part, REGISTRIES[kind].contract)


def test_an_unknown_name_comes_with_the_nearest_and_all_known(messages: Messages) -> None:
    with messages.raises(UnknownNameError):
        registry.positions["roep"]
    with pytest.raises(LookupError, match="Known: alibi, ") as caught:
        registry.positions["zzz"]
    assert "did you mean" not in str(caught.value)


def test_an_unknown_kind_is_an_unknown_name(messages: Messages) -> None:
    with messages.raises(UnknownNameError):
        registry_of("positon")


def test_two_classes_of_one_name_are_refused_naming_both_origins() -> None:
    with pytest.raises(DuplicateNameError) as caught:
        register(own("rope"))
    said = str(caught.value)
    assert "RoPE in" in said
    assert "rope.py" in said
    assert "Mine in" in said
    assert "test_registry.py" in said
    assert isinstance(caught.value, ValueError)
    assert registry.positions["rope"] is RoPE


def test_two_added_classes_of_one_name_are_refused_as_well(messages: Messages) -> None:
    first = register(own())
    with messages.raises(DuplicateNameError):
        register(own(qualname="Other"))
    assert registry.positions["mine"] is first


def test_the_same_class_defined_again_replaces() -> None:
    register(own())
    again = register(own())
    assert registry.positions["mine"] is again


def test_one_name_may_serve_two_kinds() -> None:
    register(own("twice"))
    register(own("twice", Norm))
    assert registry.positions["twice"] is not registry.norms["twice"]


@pytest.mark.parametrize("name", [None, 3, "", "two words", "a-b"])
def test_a_class_without_a_proper_name_is_refused(messages: Messages, name: Any) -> None:
    with messages.raises(TypeError):
        register(own(name))


def test_a_name_is_not_inherited(messages: Messages) -> None:
    class Child(RoPE):
        pass

    with messages.raises(TypeError):
        register(Child)


@pytest.mark.parametrize("part", [int, type("Loose", (), {"name": "loose"})])
def test_a_class_that_extends_no_contract_is_refused(messages: Messages, part: type) -> None:
    with messages.raises(TypeError):
        register(part)


def test_a_table_refuses_a_class_of_another_kind(messages: Messages) -> None:
    with messages.raises(TypeError):
        registry.norms.add(own())


def test_register_returns_the_class_so_that_it_decorates() -> None:
    part = own()
    assert register(part) is part


def test_a_table_announces_itself() -> None:
    table = Registry("colour", "colours", "variants.norms.norm:Norm", "variants.norms")
    assert registry_of("colours") is REGISTRIES["colour"] is table


def test_a_package_that_is_none_is_refused(messages: Messages) -> None:
    with messages.raises(ModuleNotFoundError):
        Registry("colour", "colours", "variants.dims:Dims", "variants.dims")


def test_what_is_added_can_be_discarded_and_what_is_built_in_stays() -> None:
    register(own())
    registry.positions.discard("mine")
    registry.positions.discard("rope")
    assert "mine" not in registry.positions
    assert "rope" in registry.positions


def test_listing_imports_neither_torch_nor_pydantic() -> None:
    code = (
        "import sys, registry\n"
        "names = [name for table in registry.registry.REGISTRIES.values() for name in table]\n"
        "print(len(names), [m for m in ('torch', 'pydantic', 'optuna') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, heavy = shown.stdout.split(" ", 1)
    assert int(count) > 25
    assert heavy.strip() == "[]"


def test_a_table_is_asked_like_a_mapping() -> None:
    assert registry.positions.get("rope") is RoPE
    assert registry.positions.get("roep") is None
    assert registry.positions.get("roep", RoPE) is RoPE


def test_a_name_is_text(messages: Messages) -> None:
    name: Any = 3
    with messages.raises(TypeError):
        registry.positions[name]
