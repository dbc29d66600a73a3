"""The part under test, and the small encoders around it."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Mapping
from copy import deepcopy
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from registry.build import build_encoder
from registry.choices import build_part, resolve
from registry.config import PARTS
from registry.conformance.checks import NotApplicable
from registry.errors import ConfigError
from registry.registry import Registry
from variants import Dims, Encoder
from variants.masks import Full, Mask
from variants.norms.layernorm import LayerNorm
from variants.positions import Position
from variants.positions.position import BeyondTableError

SYMBOLS, WIDTH, HEADS, LAYERS = 11, 16, 2, 2
DIMS = Dims(d_model=WIDTH, n_heads=HEADS, d_head=WIDTH // HEADS, n_layers=LAYERS)
SURROUNDINGS: dict[str, Any] = {
    "vocab_size": SYMBOLS + 1, "d_model": WIDTH, "n_heads": HEADS, "n_layers": LAYERS,
    "pad_id": 0, "position": "rope", "feedforward": "gelu", "norm": "layernorm",
    "norm_placement": "pre", "mask": "full", "attention": "sdpa", "readout": "tokens",
    "initializer": "xavier", "dropout": 0.0,
}  # fmt: skip
"""What stands around a part: small, and known to work."""

PLACES = ("rope", "sinusoidal", "none")
"""Positions around an attention, the first that it takes: it may form no scores to turn."""


class Subject:
    """A part with some of its options.

    Args:
        table: The registry of its kind.
        part: The class.
        options: Its options; those left out have their defaults.
    """

    def __init__(self, table: Registry, part: type[Any], options: Mapping[str, Any]) -> None:
        self.table, self.part, self.options = table, part, dict(options)
        self.kind = table.kind
        self._encoders: dict[str, Encoder] = {}

    def __str__(self) -> str:
        options = ", ".join(f"{key}={value!r}" for key, value in self.options.items())
        return f"{self.part.name}({options})"

    def with_options(self, **changes: Any) -> "Subject":
        """The same part with some options changed."""
        return Subject(self.table, self.part, {**self.options, **changes})

    def config(self, **changes: Any) -> dict[str, Any]:
        """The config of a small encoder in which the part stands at its place."""
        chosen = {"name": self.part.name, **self.options}
        around = {"position": self.place} if self.kind == "attention" else {}
        around |= {"mask": "causal"} if self.needs_causal else {}
        return {**SURROUNDINGS, **around, self.kind: chosen, **changes}

    @cached_property
    def place(self) -> str:
        """The position around an attention: that of all promises, or another if it refuses it."""
        attention = self.make()
        taken = (name for name in PLACES if attention.takes(Full(), _position(name)))
        return next(taken, PLACES[0])

    @cached_property
    def needs_causal(self) -> bool:
        """Is the part meant for causal masks alone?"""
        return self.kind == "position" and bool(self.make().causal_only)

    def takes(self, mask: Mask) -> bool:
        """May this mask be tried? Only an attention can refuse one."""
        return self.kind != "attention" or self.make().takes(mask, _position(self.place))

    def first_taken(self, *masks: Mask) -> Mask:
        """The first of these masks that may be tried.

        Raises:
            NotApplicable: If the part refuses all.
        """
        taken = next((mask for mask in masks if self.takes(mask)), None)
        if taken is None:
            raise NotApplicable(f"it refuses {masks[0]!r}")
        return taken

    def fresh(self, seed: int = 0, **changes: Any) -> Encoder:
        """A newly built encoder."""
        return build_encoder(self.config(**changes), seed=seed)

    def encoder(self, **changes: Any) -> Encoder:
        """An encoder in float64 and evaluation mode, which promises share and leave as it is.

        What starts at 0 or 1, such as a bias table, is moved, so that a fault in its use shows.
        Tokens stand at their own indices, also where the part would draw random places.
        """
        key = repr(sorted(changes.items()))
        if key not in self._encoders:
            self._encoders[key] = self.unused(**changes)
        return self._encoders[key].eval()

    def drawing(self) -> Encoder:
        """The shared encoder, or one that draws random places where the part does."""
        if not draws(self.position):
            return self.encoder()
        return moved(self.fresh()).double().eval()

    def unused(self, seed: int = 0, **changes: Any) -> Encoder:
        """The same encoder, newly built, for promises that leave a trace in it."""
        encoder = moved(self.fresh(seed, **changes)).double().eval()
        stay_in_place(encoder)
        return encoder

    def make(self) -> Any:
        """The part by itself; of the kinds that an encoder is made of, all but masks take sizes."""
        if self.kind not in PARTS:
            return self.part(**self.options)
        chosen = resolve(self.kind, {"name": self.part.name, **self.options})
        norms = [lambda: LayerNorm(DIMS)] if self.kind == "norm_placement" else []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return build_part(self.kind, chosen, DIMS, *norms)

    def is_accepted(self) -> bool:
        """Does the part take these options?"""
        try:
            self.make()
        except (ConfigError, ValueError):
            return False
        return True

    def moved(self) -> Any:
        """The part by itself, in float64 and evaluation mode, its parameters moved."""
        return moved(self.make()).double().eval()

    @property
    def position(self) -> Position:
        """The position of the encoder."""
        position = self.encoder().positions[0]
        assert isinstance(position, Position)
        return position


def _position(name: str) -> Position:
    return build_part("position", resolve("position", name), DIMS)


def moved(module: Any) -> Any:
    """The module, its parameters moved by a little that is the same each time."""
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for path, parameter in module.named_parameters():
            if not path.startswith("embedding"):
                parameter += torch.randn(parameter.shape, generator=generator) / 5
    return module


def stay_in_place(encoder: Encoder) -> None:
    """Let tokens stand at their own indices, where the position would draw others."""
    for position in filter(draws, encoder.positions):
        vars(position)["place"] = _stay


def _stay(index: Tensor, generator: torch.Generator | None) -> Tensor:
    return index


def draws(position: Any) -> bool:
    """Does this position choose the places of tokens?"""
    return type(position).place is not Position.place


def in_dtype(encoder: Encoder, dtype: torch.dtype) -> Encoder:
    """A copy of the encoder in another precision."""
    return deepcopy(encoder).to(dtype)


def answers(encoder: Encoder, index: Tensor) -> bool:
    """Does the position answer for these indices?"""
    try:
        encoder(tokens(*index.shape), positions=index)
    except BeyondTableError:
        return False
    return True


def tokens(batch: int, length: int, seed: int = 0) -> Tensor:
    """Random token ids without padding."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(1, SYMBOLS + 1, (batch, length), generator=generator)


def ragged(length: int = 6) -> Tensor:
    """A full row, a right-padded one, a left-padded one, and one padded on both sides."""
    pads = ((0, 0), (0, 2), (2, 0), (1, 1))
    rows = [F.pad(tokens(1, length - sum(pad), seed), pad) for seed, pad in enumerate(pads)]
    return torch.cat(rows)


def vectors(*shape: int, seed: int = 0) -> Tensor:
    """Normal numbers in float64."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def slopes(out: Tensor, *inputs: Tensor, seed: int = 7) -> tuple[Tensor, ...]:
    """The gradients of a loss in which every number of the output has its own weight."""
    return torch.autograd.grad((out * vectors(*out.shape, seed=seed)).sum(), inputs)


def gradients(encoder: Any, out: Tensor) -> dict[str, Tensor]:
    """Those of the parameters, by path, for a loss that weighs each number of a sample."""
    encoder.zero_grad()
    (out * vectors(*out.shape[1:], seed=5).to(out.dtype)).sum().backward()
    parameters = dict(encoder.named_parameters())
    found = {path: parameter.grad for path, parameter in parameters.items()}
    return {path: gradient.clone() for path, gradient in found.items() if gradient is not None}
