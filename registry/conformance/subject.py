"""The part under test: its variations, and the small encoders around it."""

# torch leaves types open, which strict checks would report as ours.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import sys
import traceback
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from functools import cached_property
from typing import Any, Literal, get_args, get_origin

import torch
import torch.nn.functional as F
from torch import Tensor

from registry.build import build_encoder, threads
from registry.choices import build_part, own_numbers, resolve
from registry.config import PARTS
from registry.conformance.checks import Broken, NotApplicable, Promise, Result, Status, promise_of
from registry.errors import ConfigError, Problem
from registry.registry import REGISTRIES, Registry, holds_tensor, options_of
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
    """A part with some of its options; those left out have their defaults."""

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
        with own_numbers(0):
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


REQUIRED: dict[Any, Any] = {bool: True, int: 2, float: 1.0}
"""What is tried for an option without a default."""


def variations(kind: str, part: type) -> list[dict[str, Any]]:
    """Options to try: first the defaults, then every word of each choice and both truth values.

    Options vary one at a time. Numbers keep their defaults. A part adds what else should be tried
    as `examples`, a sequence of mappings, the first of which gives options without a default.

    Raises:
        ConfigError: If an option has no default, and no example gives a value.
    """
    examples: list[Mapping[str, Any]] = list(getattr(part, "examples", ()))
    first = _required(kind, part, dict(examples[0]) if examples else {})
    found = [first]
    for name, annotation, default in options_of(part):
        now = first.get(name, default)
        found += [{**first, name: value} for value in _words(annotation) if not _same(value, now)]
    found += [{**first, **example} for example in examples]
    return list({repr(options): options for options in found}.values())


def other_values(part: type, name: str, options: Mapping[str, Any]) -> list[Any]:
    """Values for an option that differ from the one it has here."""
    annotation, default = next((a, d) for n, a, d in options_of(part) if n == name)
    now = options.get(name, default)
    found = [example[name] for example in getattr(part, "examples", ()) if name in example]
    found += [*_words(annotation), *_numbers(annotation, now), *_parts(annotation)]
    return [value for value in found if not _same(value, now)]


def _required(kind: str, part: type, example: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, annotation, default in options_of(part):
        if default is not ...:
            continue
        values = [*_words(annotation), *_parts(annotation)]
        values += [REQUIRED[annotation]] if annotation in REQUIRED else []
        values = [example[name]] if name in example else values
        if not values or (name not in example and holds_tensor(annotation)):
            rule = (
                f"the option {name!r} of {part.__qualname__} has no default: say what to try, as "
                f"in examples = ({{{name!r}: …}},)"
            )
            raise ConfigError([Problem(kind, rule)])
        found[name] = values[0]
    return found


def _same(value: Any, other: Any) -> bool:
    # Tensors have no single answer to ==, and 1 == True.
    return repr(value) == repr(other)


def _words(annotation: Any) -> Iterator[Any]:
    """The values of a Literal or a bool, also inside a union."""
    if annotation is bool:
        yield from (True, False)
    elif get_origin(annotation) is Literal:
        yield from get_args(annotation)
    else:
        for inner in get_args(annotation):
            yield from _words(inner) if get_origin(annotation) is not tuple else ()


def _numbers(annotation: Any, now: Any) -> Iterator[Any]:
    kinds = {annotation, *get_args(annotation)}
    if int in kinds:
        yield from (now + 1, 2 * now, 4 * now, now // 2) if type(now) is int else (3, 8)
    if float in kinds:
        yield from (2.0 * now, now / 2, now + 0.25) if isinstance(now, float) else (0.5, 2.0)
    if type(None) in kinds:
        yield None


def _parts(annotation: Any) -> Iterator[Any]:
    for table in REGISTRIES.values():
        if annotation is table.contract:
            yield from [name for name in ("sinusoidal", "rope") if name in table] or list(table)


class Trial:
    """A part with the options that it is tried with, and the encoders that promises share.

    Raises:
        ConfigError: If it cannot be built with its defaults.
        UnknownNameError: If a name in its waivers is that of no promise.
        TypeError: If a waiver has no reason.
    """

    def __init__(self, table: Registry, part: type[Any]) -> None:
        self.table, self.part = table, part
        self.waives: Mapping[str, str] = getattr(part, "waives", {})
        for name, reason in self.waives.items():
            promise_of(table, name)
            if not reason.strip():
                raise TypeError(f"{part.__qualname__} waives {name} without a reason")
        with self._at_its_name():
            tried = [Subject(table, part, options) for options in variations(table.kind, part)]
            self.subjects = [subject for subject in tried if subject.is_accepted()]
            if not self.subjects:
                tried[0].make()  # raises what the part says to its defaults

    @contextmanager
    def _at_its_name(self) -> Generator[None]:
        """Let configs find this class, whatever else has its name."""
        added = self.table.added
        self.table.added = {**added, self.part.name: self.part}
        try:
            with own_numbers():
                yield
        finally:
            self.table.added = added

    @threads()
    def result(self, promise: Promise) -> Result:
        """Try one promise."""
        status, detail = self._outcome(promise)
        reason = self.waives.get(promise.name)
        if reason is not None and status == "broken":
            return Result(promise.name, "waived", f"{reason} ({detail})")
        if reason is not None:
            stale = f"it is {status}, so the waiver must go: {reason}"
            return Result(promise.name, "broken", stale)
        return Result(promise.name, status, detail)

    def _outcome(self, promise: Promise) -> tuple[Status, str]:
        reasons: list[str] = []
        subjects = self.subjects[:1] if promise.once else self.subjects
        with self._at_its_name():
            for subject in subjects:
                try:
                    promise.keep(subject)
                except NotApplicable as reason:
                    reasons.append(str(reason))
                except Exception as error:
                    where = f"with {subject}: " if subject.options else ""
                    return "broken", " ".join(f"{where}{_fault(error)}".split())
        if len(reasons) == len(subjects):
            return "not applicable", reasons[0]
        return "kept", ""


def _fault(error: Exception) -> str:
    """What a promise says of a fault, or an error with the line that raised it.

    That is a line outside of installed packages, where there is one.
    """
    if isinstance(error, Broken):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    foreign = ("<", sys.prefix)
    own = [
        frame
        for frame in frames
        if "site-packages" not in frame.filename and not frame.filename.startswith(foreign)
    ]
    last = (own or frames)[-1]
    return f"{type(error).__name__}: {error} ({last.filename}, line {last.lineno})"
