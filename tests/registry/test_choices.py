"""A user's own classes: registered anywhere, at any time, then built from configs by name."""

from typing import Any, ClassVar, Literal

import pytest
import torch
from torch import nn

from registry import ConfigError, EncoderConfig, build_encoder, check, register
from registry.choices import resolve
from registry.config import hash_of, without_defaults
from registry.registry import REGISTRIES
from tests.messages import Messages
from variants.dims import Dims
from variants.masks import Mask
from variants.positions import Position


class Scaled(Position):
    """What an inner encoding adds, times a factor."""

    name = "scaled"

    def __init__(self, dims: Dims, inner: Position, factor: float = 2.0) -> None:
        super().__init__(dims)
        self.inner, self.factor = inner, factor

    def embed(self, index: Any) -> Any:
        added = self.inner.embed(index)
        return None if added is None else self.factor * added


def test_a_class_registered_late_is_found_by_a_config(messages: Messages) -> None:
    with messages.raises(ConfigError):
        EncoderConfig(position="late")

    @register
    class Late(Position):
        name = "late"

        def __init__(self, dims: Dims, slope: float = 0.5) -> None:
            super().__init__(dims)
            self.slope = slope

    built = build_encoder({"position": {"name": "late", "slope": 0.25}}, seed=0)
    assert isinstance(built.positions[0], Late)
    assert built.positions[0].slope == 0.25
    with messages.raises(ConfigError):
        EncoderConfig(position={"name": "late", "slop": 1.0})


def test_a_constructor_that_forgets_its_parents_is_told_so() -> None:
    @register
    class Forgets(Position):
        name = "forgets"

        def __init__(self, dims: Dims) -> None:
            pass

    rule = r"forgets fails: TypeError: .*Forgets\.__init__ must call super\(\)\.__init__ first"
    with pytest.raises(ConfigError, match=rule):
        build_encoder({"position": "forgets"}, seed=0)


def test_a_bias_of_another_shape_is_told_the_right_one() -> None:
    class Flat(Position):
        name = "flat"

        def bias(self, q_index: torch.Tensor, k_index: torch.Tensor) -> torch.Tensor:
            return -(q_index.unsqueeze(-1) - k_index.unsqueeze(-2)).abs().double()

    report = check(Flat, only=["each_sample_is_placed_by_its_own_indices"])
    assert report.results[0].detail == (
        "bias has the shape (batch, heads or 1, query, key), which is (2, 2, 5, 5) here; "
        "got (2, 5, 5)"
    )


@pytest.mark.parametrize(
    "kind",
    ["position", "feedforward", "norm", "norm_placement", "attention", "readout", "initializer"],
)
def test_every_kind_takes_a_class_of_ones_own(kind: str) -> None:
    table = REGISTRIES[kind]
    parent = table[EncoderConfig.model_fields[kind].default]
    part = register(type("Own", (parent,), {"name": "own", "__module__": __name__}))
    config = EncoderConfig(**{kind: "own", "vocab_size": 8, "n_classes": 3})
    encoder = build_encoder(config, seed=0)
    assert table["own"] is part
    assert encoder(torch.randint(8, (2, 5))).logits.shape == (2, 5, 3)
    kept = [module for module in encoder.modules() if type(module) is part]
    assert kept or kind == "initializer"


def test_a_mask_of_ones_own_joins_expressions() -> None:
    @register
    class Even(Mask):
        name = "even"

        def allows(self, batch: Any, head: Any, query: Any, key: Any) -> Any:
            return key % 2 == 0

    encoder = build_encoder({"mask": "causal & even"}, seed=0)
    assert encoder.mask.draw(4) == "#...\n#...\n#.#.\n#.#."


def test_a_part_that_wraps_a_part_receives_it_built() -> None:
    register(Scaled)
    inner = {"name": "learned", "max_length": 16}
    encoder = build_encoder({"position": {"name": "scaled", "inner": inner}}, seed=0)
    outer = encoder.positions[0]
    assert isinstance(outer, Scaled)
    assert outer.inner.max_length == 16
    assert outer.embed(torch.arange(4).expand(1, 4)).shape == (1, 4, 64)


def test_wrapped_parts_are_checked_hashed_and_dumped_like_any_other() -> None:
    register(Scaled)
    plain = EncoderConfig(position={"name": "scaled", "inner": "rope"})
    said = EncoderConfig(position={"name": "scaled", "inner": {"name": "rope", "theta": 1e4}})
    other = EncoderConfig(position={"name": "scaled", "inner": {"name": "rope", "theta": 1e3}})
    hashes = [hash_of(without_defaults(config)) for config in (plain, said, other)]
    assert hashes[0] == hashes[1] != hashes[2]
    assert EncoderConfig(**other.model_dump(mode="json")) == other


@pytest.mark.parametrize(
    ("position", "key", "said"),
    [
        ({"name": "scaled"}, "position.inner", "this key is required"),
        ({"name": "scaled", "inner": "roep"}, "position.inner", "did you mean 'rope'"),
        ({"name": "scaled", "inner": {"name": "rope", "thta": 1}}, "position.inner.thta", "theta"),
        ({"name": "scaled", "inner": {"name": "learned", "max_length": 0}}, "position", "at least"),
    ],
)
def test_what_is_wrong_inside_is_told_with_the_whole_path(
    position: dict[str, Any], key: str, said: str
) -> None:
    register(Scaled)
    with pytest.raises(ConfigError) as caught:
        EncoderConfig(position=position)
    (problem,) = caught.value.problems
    assert problem.key == key
    assert said in str(problem)


def test_options_of_other_types_come_from_lists_and_words() -> None:
    @register
    class Rich(Position):
        name = "rich"

        def __init__(
            self, dims: Dims, sizes: tuple[int, ...] = (1, 2), side: Literal["l", "r"] = "l"
        ) -> None:
            super().__init__(dims)
            self.sizes, self.side = sizes, side

    config = EncoderConfig(position={"name": "rich", "sizes": [3, 4], "side": "r"})
    assert build_encoder(config, seed=0).positions[0].sizes == (3, 4)
    assert EncoderConfig(**config.model_dump(mode="json")) == config
    for wrong in ({"sizes": [3, "4"]}, {"sizes": 3}, {"side": "x"}):
        with pytest.raises(ConfigError, match="position"):
            EncoderConfig(position={"name": "rich", **wrong})


def fragile(error: Exception | None, reads: bool = False) -> type[Position]:
    class Fragile(Position):
        name = "fragile"
        built: ClassVar[int] = 0

        def __init__(self, dims: Dims) -> None:
            super().__init__(dims)
            if error is not None:
                raise error
            if reads:
                self.first = float(torch.rand(3)[0])

    return register(Fragile)


def test_a_fault_in_a_constructor_is_told_with_its_key_and_kept_as_cause() -> None:
    fault = RuntimeError("shapes (3, 4)")
    fragile(fault)
    with pytest.raises(ConfigError) as caught:
        EncoderConfig(position="fragile")
    (problem,) = caught.value.problems
    assert str(problem) == "position: fragile fails: RuntimeError: shapes (3, 4)"
    assert caught.value.__cause__ is fault


def test_a_constructor_may_read_the_values_of_tensors() -> None:
    fragile(None, reads=True)
    state = torch.get_rng_state()
    EncoderConfig(position="fragile")
    assert torch.equal(torch.get_rng_state(), state)
    built: Any = build_encoder({"position": "fragile"}, seed=1)
    assert built.positions[0].first >= 0


@pytest.mark.parametrize("signature", ["**options", "*sizes", "size", "size=3", "size: object()"])
def test_a_constructor_that_is_no_schema_is_told_so(signature: str) -> None:
    space: dict[str, Any] = {"Dims": Dims, "Thing": type("Thing", (), {})}
    annotated = signature.replace("object()", "Thing")
    exec(f"def __init__(self, dims: Dims, {annotated}): ...", space)
    body = {"name": "loose", "__init__": space["__init__"], "__module__": __name__}
    register(type("Loose", (Position,), body))
    with pytest.raises(ConfigError, match="Loose") as caught:
        resolve("position", "loose")
    (problem,) = caught.value.problems
    assert any(said in problem.rule for said in ("name each option", "needs a type", "no config"))


def test_a_part_that_initializes_itself_is_left_alone() -> None:
    @register
    class Fixed(Position):
        name = "fixed"
        initializes_itself = True

        def __init__(self, dims: Dims) -> None:
            super().__init__(dims)
            self.map = nn.Linear(2, 2)
            nn.init.ones_(self.map.weight)

    built: Any = build_encoder({"position": "fixed"}, seed=0)
    assert torch.equal(built.positions[0].map.weight, torch.ones(2, 2))


@pytest.mark.parametrize("option", ["name", "options", "copy", "json", "schema", "model_config"])
def test_an_option_cannot_take_a_name_that_means_something_already(
    messages: Messages, option: str
) -> None:
    namespace: dict[str, Any] = {"Position": Position, "Dims": Dims}
    exec(
        "class Awkward(Position):\n"
        "    name = 'awkward'\n"
        f"    def __init__(self, dims: Dims, {option}: int = 1) -> None: super().__init__(dims)\n",
        namespace,
    )
    register(namespace["Awkward"])

    with messages.raises(ConfigError):
        EncoderConfig(position="awkward")


def test_an_annotation_that_cannot_be_resolved_is_told(messages: Messages) -> None:
    class Forward(Position):
        name = "forward"

        def __init__(self, dims: Dims, size: "Nowhere" = 1) -> None:  # type: ignore # noqa: F821
            super().__init__(dims)

    register(Forward)

    with messages.raises(ConfigError):
        EncoderConfig(position="forward")
