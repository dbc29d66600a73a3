"""`diff` and `schema`: what differs between two configs, and what a config may hold."""

import json
from pathlib import Path
from typing import Any

import pytest

from registry import EncoderConfig, initializers, positions
from registry.cli import main
from registry.config import json_schema
from registry.diff import differences
from registry.summary import columns

Output = pytest.CaptureFixture[str]
SMALL: dict[str, Any] = {"vocab_size": 8, "d_model": 16, "n_heads": 2, "n_layers": 1}


def told(one: dict[str, Any], other: dict[str, Any]) -> dict[str, list[str]]:
    """Each line's first words, with the two values."""
    configs = [EncoderConfig(**{**SMALL, **changes}) for changes in (one, other)]
    lines = [*differences(configs[0], configs[1], ("a", "b"), 4, None)]
    rows = [[cell for cell in line.split("  ") if cell] for line in lines]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows if row}


def test_what_two_configs_say_differently_is_told_with_its_key() -> None:
    found = told({"position": "rope"}, {"position": {"name": "rope", "theta": 500.0}})
    assert found["position.theta"] == ["10000.0", "500.0"]
    assert found["nothing else"] == []


def test_what_differs_silently_is_measured() -> None:
    found = told({}, {"feedforward": {"name": "swiglu", "d_ff": 64}})
    assert found["feedforward"] == ["gelu", "swiglu"]
    # 16·64 weights and 64 biases more; one more product for each of 2·4 tokens.
    one, other = (int(value.replace(",", "")) for value in found["parameters"])
    assert other - one == 16 * 64 + 64
    one, other = (int(value.replace(",", "")) for value in found["FLOPs, 2 sequences of 4"])
    assert other - one == 2 * 8 * 16 * 64


def test_a_norm_placement_changes_norms_and_the_size_of_states() -> None:
    found = told({}, {"norm_placement": "post"})
    assert found["norms"] == ["3", "2"]
    assert float(found["size of states after the last block, untrained"][1]) == pytest.approx(1)


def test_equal_configs_differ_in_nothing() -> None:
    assert told({}, {}) == {"no option differs": []}


def test_the_command_reads_files(tmp_path: Path, capsys: Output) -> None:
    for name, text in {"a.yaml": "d_model: 16\n", "b.yaml": "d_model: 32\n"}.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(SystemExit) as end:
        main(["diff", str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")])
    assert not end.value.code
    assert "d_model" in capsys.readouterr().out
    with pytest.raises(SystemExit) as end:
        main(["diff", str(tmp_path / "a.yaml"), str(tmp_path / "missing.yaml")])
    assert end.value.code == 2
    assert "missing.yaml: config: cannot be read" in capsys.readouterr().err


def test_the_schema_names_every_part_with_its_options(capsys: Output) -> None:
    with pytest.raises(SystemExit):
        main(["schema"])
    found = json.loads(capsys.readouterr().out)
    assert set(found["properties"]) == {*EncoderConfig.model_fields, "preset"}
    names, *parts = found["$defs"]["position"]["anyOf"]
    assert names["enum"] == list(positions)
    rope = next(part for part in parts if part["title"] == "rope")
    assert rope["properties"]["theta"]["default"] == 10_000.0
    assert rope["additionalProperties"] is False
    assert found["properties"]["position"]["$ref"] == "#/$defs/position"
    assert found["$defs"]["initializer"]["anyOf"][0]["enum"] == list(initializers)


def test_every_reference_of_the_schema_resolves() -> None:
    found = json_schema()
    text = json.dumps(found)
    for kind in set(part.split('"')[0] for part in text.split("#/$defs/")[1:]):
        assert kind in found["$defs"]


def test_a_required_option_needs_a_mapping() -> None:
    parts = json_schema()["$defs"]["mask"]["anyOf"]
    prefix = next(part for part in parts if part.get("title") == "prefix")
    assert "length" in prefix["required"]
    assert "dense" not in {part.get("title") for part in parts}


def test_columns_that_must_fit_lose_the_beginnings_of_the_widest_cells() -> None:
    rows = [["path", "file"], ["one", "a/long/way/to/some/file.py"]]
    assert columns(rows) == ["path  file", "one   a/long/way/to/some/file.py"]
    assert columns(rows, 18) == ["path  file", "one   …ome/file.py"]
