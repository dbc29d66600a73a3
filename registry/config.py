"""The config of an encoder, checked strictly: nothing is coerced, nothing unknown is accepted."""

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, Field, SerializeAsAny, ValidationError

from registry.choices import (
    STRICT,
    Choice,
    among,
    build_mask,
    build_part,
    own_numbers,
    resolve,
    schema,
)
from registry.errors import ConfigError, Problem, mapping, problems_of
from registry.presets import KEY, expanded, file_of, names
from registry.registry import Registry, needs_tensor, options_of, registry_of
from registry.yaml_file import parse_mapping, read_yaml, with_settings

if TYPE_CHECKING:
    from variants.dims import Dims


Share = Annotated[float, Field(ge=0, lt=1)]
Size = Annotated[int, Field(ge=1)]


class Dropout(BaseModel):
    """Shares dropped in training, in each of the three places."""

    model_config = STRICT

    embedding: Share = 0.0
    weights: Share = 0.0
    sublayer: Share = 0.0


def _everywhere(value: Any) -> Any:
    """One number stands for all three places."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not 0 <= value < 1:
            raise ValueError(f"a dropped share is at least 0 and below 1; got {value}")
        return {"embedding": value, "weights": value, "sublayer": value}
    return value


def named(name: str) -> Any:
    """The part that a config takes where it names none; looked up when the config is checked."""
    return Field(name)


class EncoderConfig(BaseModel):
    """Everything that makes an encoder.

    Each part is a name, or a mapping with a name and options; `mask` is also an expression. The
    options of a part are the arguments of its constructor. `d_head: null` means d_model / n_heads;
    `vocab_size: null` builds no token table; `n_classes: null` builds no linear map to logits;
    `share_layers` gives all layers one set of weights; `gradient_checkpointing` trades time for
    memory and changes no result. `preset` names a ready architecture whose keys the others
    replace; it is no key of the checked config, which says them all.

    Raises:
        ConfigError: With every problem at once.
    """

    model_config = STRICT

    vocab_size: Size | None = None
    n_classes: Size | None = None
    d_model: Size = 64
    n_heads: int = 4  # its rule, which names d_model, is below
    d_head: Size | None = None
    n_layers: Size = 2
    position: Annotated[SerializeAsAny[Choice], among("position")] = named("sinusoidal")
    position_per_layer: bool = False
    feedforward: Annotated[SerializeAsAny[Choice], among("feedforward")] = named("gelu")
    norm: Annotated[SerializeAsAny[Choice], among("norm")] = named("layernorm")
    norm_placement: Annotated[SerializeAsAny[Choice], among("norm_placement")] = named("pre")
    mask: Annotated[SerializeAsAny[Choice], among("mask")] = named("full")
    attention: Annotated[SerializeAsAny[Choice], among("attention")] = named("sdpa")
    readout: Annotated[SerializeAsAny[Choice], among("readout")] = named("tokens")
    initializer: Annotated[SerializeAsAny[Choice], among("initializer")] = named("xavier")
    dropout: Annotated[Dropout, BeforeValidator(_everywhere)] = Dropout()
    embedding_scale: bool = True
    pad_id: Annotated[int, Field(ge=0)] | None = None
    bias: bool = True
    share_layers: bool = False
    gradient_checkpointing: bool = False

    def __init__(self, /, **data: Any) -> None:
        data, problems = expanded(data), list[Problem]()
        try:
            super().__init__(**data)
        except ValidationError as error:
            problems = problems_of(error, type(self))
        problems += [*_size_problems(data), *_part_problems(data)]
        if problems:
            cause = next((problem.cause for problem in problems if problem.cause), None)
            raise ConfigError(problems) from cause

    @property
    def dims(self) -> Any:
        """The sizes that the parts share."""
        return _dims(self.model_dump())


PARTS = ("position", "feedforward", "norm", "norm_placement", "attention", "readout", "initializer")


def _sizes(data: Mapping[str, Any]) -> dict[str, Any]:
    fields = EncoderConfig.model_fields
    names = ("d_model", "n_heads", "d_head", "n_layers", "vocab_size", "pad_id")
    return {name: data.get(name, fields[name].default) for name in names}


def _is_whole(value: Any, least: int | None = None) -> bool:
    return type(value) is int and (least is None or value >= least)


def _size_problems(data: Mapping[str, Any]) -> Iterator[Problem]:
    """Rules that tie sizes to one another; the fields report wrong types."""
    sizes = _sizes(data)
    d_model, n_heads = sizes["d_model"], sizes["n_heads"]
    if _is_whole(n_heads) and _is_whole(d_model, 1):
        if n_heads < 1 or (sizes["d_head"] is None and d_model % n_heads):
            yield _uneven_heads(d_model, n_heads)
    elif _is_whole(n_heads) and n_heads < 1:
        yield Problem("n_heads", f"must be at least 1; got {n_heads}", n_heads)
    vocab_size, pad_id = sizes["vocab_size"], sizes["pad_id"]
    if _is_whole(vocab_size, 1) and _is_whole(pad_id) and pad_id >= vocab_size:
        rule = f"pad_id is a token id below vocab_size={vocab_size}; got {pad_id}"
        yield Problem("pad_id", rule, pad_id)


def _uneven_heads(d_model: int, n_heads: int) -> Problem:
    low = [count for count in range(1, isqrt(d_model) + 1) if d_model % count == 0]
    divisors = {*low, *(d_model // count for count in low)}
    near = sorted(sorted(divisors, key=lambda count: (abs(count - n_heads), count))[:3])
    rule = (
        f"every head needs the same width, so n_heads must divide d_model; got d_model={d_model}, "
        f"n_heads={n_heads}; take one of the allowed head counts, or set d_head"
    )
    return Problem("n_heads", rule, n_heads, tuple(map(str, near)))


def _dims(data: Mapping[str, Any]) -> "Dims":
    from variants.dims import Dims

    sizes = _sizes(data)
    d_head = sizes["d_head"] or sizes["d_model"] // sizes["n_heads"]
    bias = data.get("bias", True) is True
    return Dims(sizes["d_model"], sizes["n_heads"], d_head, sizes["n_layers"], bias)


def _part_problems(data: Mapping[str, Any]) -> Iterator[Problem]:
    """What the parts themselves refuse, options, sizes or one another: found by building each."""
    sizes = _sizes(data)
    if not all(_is_whole(sizes[name], 1) for name in ("d_model", "n_heads", "n_layers")):
        return
    even = sizes["d_head"] is None and sizes["d_model"] % sizes["n_heads"] == 0
    if not even and not _is_whole(sizes["d_head"], 1):
        return
    chosen: dict[str, Choice] = {}
    for kind in ("mask", *PARTS):
        # What cannot be resolved is among the errors of the fields.
        with suppress(ConfigError):
            chosen[kind] = resolve(kind, data.get(kind, EncoderConfig.model_fields[kind].default))
    built: dict[str, Any] = {}
    for kind in chosen:
        if kind == "norm_placement" and "norm" not in built:
            continue  # it is made of norms
        try:
            built[kind] = _built(kind, chosen, _dims(data))
        except ConfigError as error:
            yield from (problem.under(kind) for problem in error.problems)
    yield from _misfits(chosen, built, data.get("gradient_checkpointing") is True)


def _built(kind: str, chosen: Mapping[str, Choice], dims: "Dims") -> Any:
    if kind == "mask":
        return build_mask(chosen[kind])
    make_norm = [lambda: build_part("norm", chosen["norm"], dims)]
    # Not on torch's meta device: filling a table there imports its compiler, for two seconds.
    with own_numbers():
        return build_part(kind, chosen[kind], dims, *(make_norm * (kind == "norm_placement")))


def _misfits(
    chosen: Mapping[str, Choice], built: Mapping[str, Any], gradient_checkpointing: bool
) -> Iterator[Problem]:
    if built.keys() >= {"mask", "position"}:
        mask, position = built["mask"], built["position"]
        if position.causal_only and mask.looks_ahead():
            rule = (
                f"{chosen['position']} is right for keys up to the query alone, and the mask "
                f"{str(chosen['mask'])!r} lets queries see later ones; set mask: causal, or one "
                'within it such as "causal & window(left=8)" (a mask of the call does not count), '
                "or take a position for both directions"
            )
            yield Problem("position", rule, str(chosen["position"]))
        try:
            if "attention" in built:
                built["attention"].check(mask, position)
        except ValueError as error:
            yield Problem("attention", str(error), str(chosen["attention"]), cause=error)
    if gradient_checkpointing and "norm" in built and built["norm"].spans_tokens:
        rule = (
            "the backward pass computes each block again, which would count every batch twice in "
            f"{chosen['norm'].name}; set it to false, or take another norm"
        )
        yield Problem("gradient_checkpointing", rule, True)


def encoder_config(
    config: "EncoderConfig | Mapping[str, Any] | str | Path", **overrides: Any
) -> EncoderConfig:
    """The checked config of a preset, a mapping or a YAML file, with some keys replaced.

    Raises:
        ConfigError: If it breaks a rule; it holds every problem.
        UnknownNameError: If a word is neither the name of a preset nor a file.
    """
    file = None
    if isinstance(config, EncoderConfig):
        data: Mapping[str, Any] = dict(config)
    elif names_preset(config):
        data = {KEY: config}
    elif isinstance(config, str | Path):
        file, data = str(config), read_yaml(Path(config))
    else:
        data = mapping(config)
    try:
        return EncoderConfig(**{**data, **overrides})
    except ConfigError as error:
        raise error.under("", file) from error.__cause__


def names_preset(source: object) -> bool:
    """Is this a preset's name, not a file?

    Raises:
        UnknownNameError: If it looks like a name, and no preset has it.
    """
    if not isinstance(source, str) or not source.isidentifier() or Path(source).is_file():
        return False
    return file_of(source).is_file()


def without_defaults(config: BaseModel) -> dict[str, Any]:
    """What a config says beyond its defaults, as plain data; a choice keeps its name."""
    kept: dict[str, Any] = {}
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if isinstance(value, Choice):
            inner = without_defaults(value)
            default: Any = field.get_default(call_default_factory=True, validated_data={})
            default = {"name": default} if isinstance(default, str) else default
            kept |= {} if inner == default else {name: inner}
        elif isinstance(value, BaseModel):
            inner = without_defaults(value)
            kept |= {name: inner} if inner or value != field.get_default() else {}
        elif field.is_required() or value != field.get_default():
            kept[name] = _plain(value)
    return kept


def _plain(value: Any) -> Any:
    """A value as JSON would have it: lists for tuples, mappings for choices in them."""
    if isinstance(value, BaseModel):
        return without_defaults(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in cast(tuple[Any, ...], value)]
    return value


def hash_of(data: Any) -> str:
    """A short fingerprint of plain data: the same for equal data, whatever the order of keys."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_config(source: str, settings: Sequence[str]) -> tuple[EncoderConfig, list[str]]:
    """The encoder's config, and the other roots of its file, which are not ours to judge.

    Raises:
        ConfigError: If it cannot be read, or breaks a rule.
        UnknownNameError: If a word is neither the name of a preset nor a file.
    """
    if source == "-":
        data = parse_mapping(sys.stdin.read(), "-")
    else:
        data = {KEY: source} if names_preset(source) else read_yaml(Path(source))
    root = "encoder" if "encoder" in data else ""
    unread = [key for key in data if root and key != root]
    fields = EncoderConfig.model_fields
    wrong = [Problem(key, "belongs under encoder", file=source) for key in unread if key in fields]
    if wrong:
        raise ConfigError(wrong)
    # Options can be set inside a part that the file leaves at its default.
    parts = {name: field.default for name, field in fields.items() if type(field.default) is str}
    try:
        given = {**parts, **expanded(mapping(data[root] if root else data))}
        inner = [setting.removeprefix("encoder.") for setting in settings]
        return encoder_config(with_settings(given, inner)), unread
    except ConfigError as error:
        raise error.under(root, source) from error.__cause__


def mask_of(source: str) -> str:
    """The mask that a word stands for: that of a preset or a YAML file, or itself.

    Raises:
        ConfigError: If a file cannot be read, or its config breaks a rule.
    """
    if source in names() or source.endswith((".yaml", ".yml")):
        return str(read_config(source, [])[0].mask)
    return source


DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """The schema that editors and other programs check configs by.

    It knows types, names and options; what sizes mean to one another is checked by the builder.
    """
    found: dict[str, Any] = EncoderConfig.model_json_schema()
    definitions: dict[str, Any] = found.setdefault("$defs", {})
    definitions.pop("Choice", None)
    for kind in ("mask", *PARTS):
        definitions[kind] = _choice(registry_of(kind))
        default = EncoderConfig.model_fields[kind].default
        found["properties"][kind] = {"$ref": f"#/$defs/{kind}", "default": default}
    everywhere = {"type": "number", "minimum": 0, "exclusiveMaximum": 1}
    dropout = found["properties"]["dropout"]
    default = dropout.pop("default", 0.0)
    found["properties"]["dropout"] = {"anyOf": [everywhere, dropout], "default": default}
    known = {"enum": names(), "description": "a ready architecture, whose keys the others replace"}
    found["properties"][KEY] = known
    return {"$schema": DIALECT, **found}


def _choice(table: Registry) -> dict[str, Any]:
    """A name, or a mapping with a name and options; for masks also an expression."""
    parts = [table[name] for name in table if not needs_tensor(table[name])]
    names = [part.name for part in parts if not any(d is ... for _, _, d in options_of(part))]
    name: dict[str, Any] = {"enum": names}
    if table.kind == "mask":
        name = {"type": "string", "description": "a name, or an expression with &, | and ~"}
    return {
        "description": table.about,
        "anyOf": [name, *(_mapping(table.kind, part) for part in parts)],
    }


def _mapping(kind: str, part: type[Any]) -> dict[str, Any]:
    model: dict[str, Any] = schema(kind, part).model_json_schema()
    model.pop("$defs", None)
    contracts = {registry_of(kind).contract: kind for kind in PARTS}
    for name, annotation, _ in options_of(part):
        if annotation in contracts:
            model["properties"][name] = {"$ref": f"#/$defs/{contracts[annotation]}"}
    doc = (part.__doc__ or "").strip().split("\n")[0]
    return {**model, "title": part.name, "description": doc}
