"""Configs that commands are given: a file, or stdin."""

import sys
from collections.abc import Sequence
from pathlib import Path

from registry.config import EncoderConfig, encoder_config
from registry.problems import ConfigError, Problem, mapping
from registry.settings import with_settings
from registry.yaml_file import parse_mapping, read_yaml


def read_config(source: str, settings: Sequence[str]) -> tuple[EncoderConfig, list[str]]:
    """The encoder's config, and the other roots of its file, which are not ours to judge."""
    data = parse_mapping(sys.stdin.read(), "-") if source == "-" else read_yaml(Path(source))
    root = "encoder" if "encoder" in data else ""
    unread = [key for key in data if root and key != root]
    fields = EncoderConfig.model_fields
    wrong = [Problem(key, "belongs under encoder", file=source) for key in unread if key in fields]
    if wrong:
        raise ConfigError(wrong)
    # Options can be set inside a part that the file leaves at its default.
    parts = {name: field.default for name, field in fields.items() if type(field.default) is str}
    try:
        given = {**parts, **mapping(data[root] if root else data)}
        inner = [setting.removeprefix("encoder.") for setting in settings]
        return encoder_config(with_settings(given, inner)), unread
    except ConfigError as error:
        problems = [problem.under(root, source) for problem in error.problems]
        raise ConfigError(problems) from error.__cause__
