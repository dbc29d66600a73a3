"""Configs that commands are given: a preset, a file, or stdin."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from registry.config import EncoderConfig, encoder_config, names_preset
from registry.presets import KEY, expanded, names
from registry.problems import ConfigError, Problem, mapping
from registry.settings import with_settings
from registry.yaml_file import parse_mapping, read_yaml


def read_config(source: str, settings: Sequence[str]) -> tuple[EncoderConfig, list[str]]:
    """The encoder's config, and the other roots of its file, which are not ours to judge.

    Raises:
        ConfigError: If it cannot be read, or breaks a rule.
        UnknownNameError: If a word is neither the name of a preset nor a file.
    """
    data = _read(source)
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
        problems = [problem.under(root, source) for problem in error.problems]
        raise ConfigError(problems) from error.__cause__


def _read(source: str) -> Mapping[str, Any]:
    if source == "-":
        return parse_mapping(sys.stdin.read(), "-")
    return {KEY: source} if names_preset(source) else read_yaml(Path(source))


def mask_of(source: str) -> str:
    """The mask that a word stands for: that of a preset or a YAML file, or itself.

    Raises:
        ConfigError: If a file cannot be read, or its config breaks a rule.
    """
    if source in names() or source.endswith((".yaml", ".yml")):
        return str(read_config(source, [])[0].mask)
    return source
