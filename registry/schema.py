"""The JSON Schema of a config, with the names and options of every kind of part."""

from typing import Any

from registry.choices import schema
from registry.config import PARTS, EncoderConfig
from registry.options import holds_tensor, options_of
from registry.presets import KEY, names
from registry.registry import Registry, registry_of

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
    parts = [table[name] for name in table if not _needs_tensors(table[name])]
    names = [part.name for part in parts if not any(d is ... for _, _, d in options_of(part))]
    name: dict[str, Any] = {"enum": names}
    if table.kind == "mask":
        name = {"type": "string", "description": "a name, or an expression with &, | and ~"}
    return {
        "description": table.about,
        "anyOf": [name, *(_mapping(table.kind, part) for part in parts)],
    }


def _needs_tensors(part: type) -> bool:
    return any(holds_tensor(annotation) for _, annotation, _ in options_of(part))


def _mapping(kind: str, part: type[Any]) -> dict[str, Any]:
    model: dict[str, Any] = schema(kind, part).model_json_schema()
    model.pop("$defs", None)
    contracts = {registry_of(kind).contract: kind for kind in PARTS}
    for name, annotation, _ in options_of(part):
        if annotation in contracts:
            model["properties"][name] = {"$ref": f"#/$defs/{contracts[annotation]}"}
    doc = (part.__doc__ or "").strip().split("\n")[0]
    return {**model, "title": part.name, "description": doc}
