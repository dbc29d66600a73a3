"""The config of an encoder, checked strictly: nothing is coerced, nothing unknown is accepted."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from registry.choices import Choice, build_mask, build_part, choice, resolve
from registry.problems import ConfigError, Problem, mapping, problems_of

Share = Annotated[float, Field(ge=0, lt=1)]
Size = Annotated[int, Field(ge=1)]


class Dropout(BaseModel):
    """Shares dropped in training, in each of the three places."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    embedding: Share = 0.0
    weights: Share = 0.0
    sublayer: Share = 0.0


def _everywhere(value: Any) -> Any:
    """One number stands for all three places."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"embedding": value, "weights": value, "sublayer": value}
    return value


class EncoderConfig(BaseModel):
    """Everything that makes an encoder.

    Each part is a name, or a mapping with a name and options; `mask` is also an expression. The
    options of a part are the arguments of its constructor. `d_head: null` means d_model / n_heads;
    `vocab_size: null` builds no token table; `n_classes: null` builds no linear map to logits.

    Raises:
        ConfigError: With every problem at once.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    vocab_size: Size | None = None
    n_classes: Size | None = None
    d_model: Size = 64
    n_heads: Size = 4
    d_head: Size | None = None
    n_layers: Size = 2
    position: choice("position") = Field("sinusoidal", validate_default=True)  # type: ignore
    position_per_layer: bool = False
    feedforward: choice("feedforward") = Field("gelu", validate_default=True)  # type: ignore
    norm: choice("norm") = Field("layernorm", validate_default=True)  # type: ignore
    norm_placement: choice("norm_placement") = Field("pre", validate_default=True)  # type: ignore
    mask: choice("mask") = Field("full", validate_default=True)  # type: ignore
    attention: choice("attention") = Field("sdpa", validate_default=True)  # type: ignore
    readout: choice("readout") = Field("tokens", validate_default=True)  # type: ignore
    initializer: choice("initializer") = Field("xavier", validate_default=True)  # type: ignore
    dropout: Annotated[Dropout, BeforeValidator(_everywhere)] = Dropout()
    embedding_scale: bool = True
    pad_id: Annotated[int, Field(ge=0)] | None = None
    bias: bool = True

    def __init__(self, **data: Any) -> None:
        problems: list[Problem] = []
        try:
            super().__init__(**data)
        except ValidationError as error:
            problems = problems_of(error, type(self))
        problems += _size_problems(data) + _part_problems(data)
        if problems:
            raise ConfigError(problems)

    @property
    def dims(self) -> Any:
        """The sizes that the parts share."""
        return _dims(self.model_dump())


PARTS = ("position", "feedforward", "norm", "norm_placement", "attention", "readout", "initializer")


def _sizes(data: Mapping[str, Any]) -> dict[str, Any]:
    fields = EncoderConfig.model_fields
    names = ("d_model", "n_heads", "d_head", "n_layers", "vocab_size", "pad_id")
    return {name: data.get(name, fields[name].default) for name in names}


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _size_problems(data: Mapping[str, Any]) -> list[Problem]:
    """Rules that tie sizes to one another; wrong types are told elsewhere."""
    sizes, problems = _sizes(data), []
    d_model, n_heads = sizes["d_model"], sizes["n_heads"]
    if sizes["d_head"] is None and _is_size(d_model) and _is_size(n_heads) and d_model % n_heads:
        problems.append(_uneven_heads(d_model, n_heads))
    vocab_size, pad_id = sizes["vocab_size"], sizes["pad_id"]
    if _is_size(vocab_size) and isinstance(pad_id, int) and pad_id >= vocab_size:
        rule = f"pad_id is a token id below vocab_size={vocab_size}; got {pad_id}"
        problems.append(Problem("pad_id", rule, pad_id))
    return problems


def _uneven_heads(d_model: int, n_heads: int) -> Problem:
    divisors = [count for count in range(1, d_model + 1) if d_model % count == 0]
    near = sorted(sorted(divisors, key=lambda count: abs(count - n_heads))[:3])
    rule = (
        f"every head needs the same width, so n_heads must divide d_model; got d_model={d_model}, "
        f"n_heads={n_heads}; take one of the allowed head counts, or set d_head"
    )
    return Problem("n_heads", rule, n_heads, tuple(map(str, near)))


def _dims(data: Mapping[str, Any]) -> Any:
    from variants.dims import Dims

    sizes = _sizes(data)
    d_head = sizes["d_head"] or sizes["d_model"] // sizes["n_heads"]
    bias = data.get("bias", True) is True
    return Dims(sizes["d_model"], sizes["n_heads"], d_head, sizes["n_layers"], bias)


def _part_problems(data: Mapping[str, Any]) -> list[Problem]:
    """What the parts themselves refuse, found by building each on no device."""
    sizes = _sizes(data)
    d_head = sizes["d_head"]
    if not all(_is_size(sizes[name]) for name in ("d_model", "n_heads", "n_layers")):
        return []
    if not (_is_size(d_head) or (d_head is None and sizes["d_model"] % sizes["n_heads"] == 0)):
        return []
    problems: list[Problem] = []
    for kind in ("mask", *PARTS):
        chosen = _resolved(kind, data)
        if chosen is None:
            continue
        try:
            _try_part(kind, chosen, _dims(data))
        except ConfigError as error:
            problems += [problem.under(kind) for problem in error.problems]
    return problems


def _resolved(kind: str, data: Mapping[str, Any]) -> Choice | None:
    try:
        return resolve(kind, data.get(kind, EncoderConfig.model_fields[kind].default))
    except ConfigError:
        return None  # told with the errors of the fields


def _try_part(kind: str, chosen: Choice, dims: Any) -> None:
    import torch

    from variants.norms.layernorm import LayerNorm

    if kind == "mask":
        build_mask(chosen)
        return
    given = (dims, lambda: LayerNorm(dims)) if kind == "norm_placement" else (dims,)
    with torch.device("meta"):
        build_part(kind, chosen, *given)


def encoder_config(
    config: "EncoderConfig | Mapping[str, Any] | str | Path", **overrides: Any
) -> EncoderConfig:
    """The checked config of a mapping or a YAML file, with some keys replaced.

    Raises:
        ConfigError: If it breaks a rule; every problem is told.
    """
    file = None
    if isinstance(config, EncoderConfig):
        data: Mapping[str, Any] = dict(config)
    elif isinstance(config, str | Path):
        from registry.yaml_file import read_yaml

        file, data = str(config), read_yaml(Path(config))
    else:
        data = mapping(config)
    try:
        return EncoderConfig(**{**data, **overrides})
    except ConfigError as error:
        raise ConfigError(problem.under("", file) for problem in error.problems) from None


def without_defaults(config: BaseModel) -> dict[str, Any]:
    """What a config says beyond its defaults, as plain data; a choice keeps its name."""
    kept: dict[str, Any] = {}
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if isinstance(value, Choice):
            inner = without_defaults(value)
            default = field.get_default(call_default_factory=True, validated_data={})
            kept |= {} if inner == {"name": default} else {name: inner}
        elif isinstance(value, BaseModel):
            inner = without_defaults(value)
            kept |= {name: inner} if inner else {}
        elif field.is_required() or value != field.get_default():
            kept[name] = list(value) if isinstance(value, tuple) else value
    return kept


def hash_of(data: Any) -> str:
    """A short fingerprint of plain data: the same for equal data, whatever the order of keys."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
