"""`explain`: what a config builds, as a table whose parameters sum to those of the model."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from registry import build_encoder
from registry.cli import main
from registry.config import EncoderConfig
from registry.inspect import explain
from registry.yaml_file import parse_mapping
from tests.messages import Messages

Output = pytest.CaptureFixture[str]

MINE = """
from registry import register
from variants.positions import Position
from tests.messages import Messages

@register
class Mine(Position):
    name = "mine"

    def embed(self, index):
        return index.nothing
"""


def command(*words: str, code: int = 0) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert (caught.value.code or 0) == code


def refused(capsys: Output, *words: str) -> str:
    command(*words, code=2)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Traceback" not in shown.err
    return shown.err


def plugin(folder: Path) -> str:
    file = folder / "mine.py"
    file.write_text(MINE)
    return str(file)


def config(folder: Path, text: str) -> str:
    file = folder / "config.yaml"
    file.write_text(text)
    return str(file)


CONFIGS = [
    "{}",
    "{vocab_size: 16, n_classes: 3, position: learned, pad_id: 0}",
    "{vocab_size: 16, position: t5_bias, position_per_layer: true, n_layers: 3, bias: false}",
    "{feedforward: swiglu, norm: rmsnorm, norm_placement: post, attention: explicit}",
    "{d_model: 10, n_heads: 3, d_head: 4, mask: 'causal & window(radius=2)', readout: mean}",
]


@pytest.mark.parametrize("text", CONFIGS)
def test_the_parameters_of_the_rows_sum_to_those_of_the_model(text: str) -> None:
    checked = EncoderConfig(**parse_mapping(text, "-"))
    total = sum(one.numel() for one in build_encoder(checked, seed=0).parameters())
    found = explain(checked)
    assert sum(row.parameters for row in found.rows) == total
    assert f"{total:,} parameters" in found.headline[0]


def test_operations_are_counted_once_each() -> None:
    found = explain(EncoderConfig(d_model=64, n_heads=4, n_layers=2), length=8)
    flops = {row.path: row.flops for row in found.rows}
    tokens, heads = 2 * 8, 2 * 4
    for layer in (0, 1):
        assert flops[f"blocks.{layer}.attention"] == 4 * 2 * tokens * 64 * 64
        assert flops[f"blocks.{layer}.feedforward"] == 2 * 2 * tokens * 64 * 256
    assert flops["attention"] == 2 * 2 * 2 * heads * 8 * 8 * 16
    explicit = explain(EncoderConfig(d_model=64, n_heads=4, n_layers=2, attention="explicit"))
    assert {row.path: row.flops for row in explicit.rows}["attention"] == flops["attention"]
    assert flops["encoder"] == flops["blocks.0"] == flops["blocks.0.joins.0"] == 0


def shapes(**changes: object) -> dict[str, tuple[str, str]]:
    """Axes and shape of each tensor on the way, for two sequences of five tokens."""
    sizes: dict[str, Any] = {"d_model": 12, "n_heads": 4, "n_layers": 2, "vocab_size": 9}
    found = explain(EncoderConfig(**{**sizes, **changes}), length=5).tensors
    return {name: (axes, shape) for name, axes, shape, _ in found}


def test_every_tensor_on_the_way_has_its_shape() -> None:
    found = shapes(
        position="alibi", feedforward={"name": "swiglu", "d_ff": 7}, n_classes=3, d_head=2
    )
    by_head, cells = ("batch heads query d_head", "2×4×5×2"), ("batch heads query key", "2×4×5×5")
    assert found == {
        "tokens": ("batch seq", "2×5"),
        "token vectors": ("batch seq d_model", "2×5×12"),
        "position bias": ("batch heads query key", "1×4×5×5"),
        "queries (q)": by_head,
        "keys (k)": ("batch heads key d_head", "2×4×5×2"),
        "values (v)": ("batch heads key d_head", "2×4×5×2"),
        "scores": cells,
        "weights": cells,
        "mixed values": by_head,
        "attention's output": ("batch seq d_model", "2×5×12"),
        "feed-forward, to_gate": ("batch seq d_ff", "2×5×7"),
        "feed-forward, to_hidden": ("batch seq d_ff", "2×5×7"),
        "feed-forward's output": ("batch seq d_model", "2×5×12"),
        "final states": ("batch seq d_model", "2×5×12"),
        "readout": ("batch seq d_model", "2×5×12"),
        "logits": ("batch seq n_classes", "2×5×3"),
    }


def test_tensors_follow_the_parts() -> None:
    found = shapes(
        vocab_size=None, position="sinusoidal", feedforward="none", readout="mean",
        attention={"name": "explicit", "n_kv_heads": 2},
    )  # fmt: skip
    assert found["tokens"] == ("batch seq d_model", "2×5×12")
    assert found["added to token vectors"] == ("batch seq d_model", "1×5×12")
    assert found["keys, values as projected"] == ("batch seq (kv_heads d_head)", "2×5×6")
    assert found["keys (k)"] == ("batch heads key d_head", "2×4×5×3")
    assert found["readout"] == ("batch d_model", "2×12")
    assert not [name for name in found if "feed-forward" in name or name == "token vectors"]


def test_it_is_said_who_holds_the_scores() -> None:
    held = {
        backend: next(
            row[3]
            for row in explain(EncoderConfig(position="none", attention=backend)).tensors
            if row[0] == "weights"
        )
        for backend in ("explicit", "sdpa")
    }
    assert held["explicit"] == "in each layer"
    assert held["sdpa"] == "as sdpa works; whole by explicit, where weights are asked for"


def test_explain_prints_sizes_norms_and_parts(capsys: Output, tmp_path: Path) -> None:
    file = config(tmp_path, "vocab_size: 16\nposition: {name: learned, max_length: 32}\n")
    command("explain", file)
    shown = capsys.readouterr().out
    assert shown.startswith("2 layers, 4 heads, d_model 64, d_head 16, d_ff 256, ")
    assert re.search(r"mean norm: token vectors \d+\.\d\d, position table \d+\.\d\d", shown)
    row = r"positions\.0 +Learned +\S+learned\.py +max_length=32.* embed +2,048"
    assert re.search(row, shown)
    assert re.search(r"blocks\.1\.feedforward +GELU +\S+ .* 2×8×64 +33,088 +1,048,576", shown)
    assert re.search(r"^mask +Full ", shown, re.MULTILINE)
    assert re.search(r"^total +[\d,]+ +[\d,]+$", shown, re.MULTILINE)


def test_one_layer_and_one_head_are_no_plural(capsys: Output, tmp_path: Path) -> None:
    command("explain", config(tmp_path, "n_layers: 1\nn_heads: 1\n"))
    assert capsys.readouterr().out.startswith("1 layer, 1 head, d_model 64, d_head 64, ")


def test_explain_reads_an_encoder_root_and_says_what_it_leaves(
    capsys: Output, tmp_path: Path
) -> None:
    file = config(tmp_path, "encoder: {d_model: 32}\ntask: shift\n")
    command("explain", file, "--set", "n_heads=2", "--set", "encoder.position.name=rope")
    shown = capsys.readouterr().out
    assert "2 heads, d_model 32, d_head 16" in shown
    assert "not looked at: task" in shown
    assert "RoPE" in shown


def test_explain_reads_stdin() -> None:
    run = [sys.executable, "-m", "registry", "explain", "-"]
    shown = subprocess.run(run, input="d_model: 8\n", capture_output=True, text=True, check=True)
    assert "d_model 8, d_head 2" in shown.stdout


def test_settings_reach_the_options_of_a_part_left_at_its_default(
    capsys: Output, tmp_path: Path
) -> None:
    command("explain", config(tmp_path, ""), "--set", "feedforward.d_ff=7", "--length", "3")
    shown = capsys.readouterr().out
    assert "d_ff 7" in shown
    assert "2×3×64" in shown


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("d_modl: 3", []),
        ("encoder: {d_modl: 3}", []),
        ("encoder: {}\nd_model: 3", []),
        ("encoder: 3", []),
        ("{}", ["--set", "d_model"]),
        ("{}", ["--set", "=3"]),
        ("{}", ["--set", "d_model=[1"]),
        ("{}", ["--set", "d_model.x=1"]),
        ("d_model: 3", ["--set", "d_model.x=1"]),
        ("position: {name: learned, max_length: 4}", []),
    ],
)
def test_explain_refuses_what_is_wrong(
    messages: Messages, capsys: Output, tmp_path: Path, text: str, words: list[str]
) -> None:
    messages(refused(capsys, "explain", config(tmp_path, text), *words))


def test_every_problem_is_printed(capsys: Output, tmp_path: Path) -> None:
    file = config(tmp_path, "{n_head: 3, n_layers: '2', d_model: 10, n_heads: 3}")
    shown = refused(capsys, "explain", file)
    assert "3 problems" in shown
    assert shown.count(file) == 3


def test_a_part_that_fails_on_the_sample_is_named(capsys: Output, tmp_path: Path) -> None:
    file = plugin(tmp_path)
    words = ("explain", config(tmp_path, "position: mine"), "--import", file)
    shown = refused(capsys, *words)
    assert "encoder: fails on a sample batch: AttributeError" in shown


def test_counting_operations_does_not_import_the_compiler_of_torch() -> None:
    program = (
        "import sys, torch\n"
        "from registry.inspect import counting\n"
        "with torch.no_grad(), counting() as counter:\n"
        "    torch.ones(2, 3) @ torch.ones(3, 5)\n"
        "print(counter.get_total_flops(), 'torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.stdout.split() == ["60", "False"], done.stderr
