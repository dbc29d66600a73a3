"""The command line: what each command prints, and how it fails."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from registry import build_encoder
from registry.__main__ import main
from registry.config import EncoderConfig
from registry.explaining import explain
from registry.table import TABLES

Output = pytest.CaptureFixture[str]

MINE = '''
from registry import register
from variants.positions import Position

@register
class Mine(Position):
    """My own idea."""

    name = "mine"
    sees_direction = False

    def embed(self, index):
        return {}
'''


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


def plugin(folder: Path, embed: str = "None") -> str:
    file = folder / "mine.py"
    file.write_text(MINE.replace("{}", embed))
    return str(file)


def config(folder: Path, text: str) -> str:
    file = folder / "config.yaml"
    file.write_text(text)
    return str(file)


@pytest.mark.parametrize("words", [[], ["list"], ["show"], ["explain"], ["draw"]])
def test_help_and_lists_import_nothing_heavy(words: list[str]) -> None:
    code = (
        "import sys\nfrom registry.__main__ import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "heavy = ('torch', 'sqlalchemy', 'optuna', 'pandas', 'registry.config')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    for tail in [["--help"], []] if words == ["list"] else [["--help"]]:
        run = [sys.executable, "-c", code, *words, *tail]
        shown = subprocess.run(run, capture_output=True, text=True, check=True).stdout
        assert shown.splitlines()[-1] == "[]"
        assert len(shown.splitlines()) > 5


def test_list_names_every_part_with_its_first_line(capsys: Output) -> None:
    command("list")
    shown = capsys.readouterr().out
    for kind in ("position", "feedforward", "mask", "attention"):
        assert f"{kind}: {TABLES[kind].about}" in shown
        for name, part in TABLES[kind].items():
            line = (part.__doc__ or "").split("\n")[0]
            assert re.search(rf"^  {name} +{re.escape(line)}$", shown, re.MULTILINE)
    assert "--import studies.tasks" in shown


@pytest.mark.parametrize("kind", ["position", "positions"])
def test_list_takes_a_kind_in_either_number(capsys: Output, kind: str) -> None:
    command("list", kind)
    shown = capsys.readouterr().out
    assert shown.startswith("position: ")
    assert "layernorm" not in shown


def test_imports_join_the_lists(capsys: Output, tmp_path: Path) -> None:
    command("list", "position", "--import", plugin(tmp_path))
    assert re.search(r"^  mine +My own idea\.$", capsys.readouterr().out, re.MULTILINE)


def test_the_tasks_join_as_a_kind() -> None:
    run = [sys.executable, "-m", "registry", "list", "tasks", "--import", "studies.tasks"]
    shown = subprocess.run(run, capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("task: ")
    assert "parity" in shown.stdout


def test_show_tells_class_file_docstring_options_and_facts(capsys: Output) -> None:
    command("show", "position", "rope")
    shown = capsys.readouterr().out
    assert "variants.positions.rope.RoPE" in shown
    assert "variants/positions/rope.py" in shown
    assert "Source: Su et al. 2021" in shown
    assert re.search(r"^  theta +float +default 10000.0$", shown, re.MULTILINE)
    assert re.search(r"^  beyond +'extends'$", shown, re.MULTILINE)
    assert re.search(r"^  distance_only +True$", shown, re.MULTILINE)


def test_show_tells_required_options_and_none(capsys: Output) -> None:
    command("show", "masks", "prefix")
    assert re.search(r"^  length +int +required$", capsys.readouterr().out, re.MULTILINE)
    command("show", "readout", "mean")
    assert "options: none" in capsys.readouterr().out


def test_show_shows_a_part_of_ones_own(capsys: Output, tmp_path: Path) -> None:
    file = plugin(tmp_path)
    command("show", "position", "mine", "--import", file)
    shown = capsys.readouterr().out
    assert file in shown
    assert re.search(r"^  sees_direction +False$", shown, re.MULTILINE)


CONFIGS = [
    "{}",
    "{vocab_size: 16, n_classes: 3, position: learned, pad_id: 0}",
    "{vocab_size: 16, position: t5_bias, position_per_layer: true, n_layers: 3, bias: false}",
    "{feedforward: swiglu, norm: rmsnorm, norm_placement: post, attention: explicit}",
    "{d_model: 10, n_heads: 3, d_head: 4, mask: 'causal & window(radius=2)', readout: mean}",
]


@pytest.mark.parametrize("text", CONFIGS)
def test_the_parameters_of_the_rows_sum_to_those_of_the_model(text: str) -> None:
    from registry.yaml_file import parse_mapping

    checked = EncoderConfig(**parse_mapping(text, "-"))
    total = sum(one.numel() for one in build_encoder(checked, seed=0).parameters())
    found = explain(checked)
    assert sum(row.parameters for row in found.rows) == total
    assert f"{total:,} parameters" in found.headline[0]


def test_explain_prints_sizes_norms_and_parts(capsys: Output, tmp_path: Path) -> None:
    file = config(tmp_path, "vocab_size: 16\nposition: {name: learned, max_length: 32}\n")
    command("explain", file)
    shown = capsys.readouterr().out
    assert shown.startswith("2 layers, 4 heads, d_model 64, d_head 16, d_ff 256, ")
    assert re.search(r"mean norm: token vectors \d+\.\d\d, position table \d+\.\d\d", shown)
    row = r"positions\.0 +Learned +\S+learned\.py +max_length=32 +embed +2,048"
    assert re.search(row, shown)
    assert re.search(r"blocks\.1\.feedforward +GELU +\S+ +d_ff=None +2×8×64 +33,088", shown)
    assert re.search(r"^mask +Full ", shown, re.MULTILINE)
    assert re.search(r"^total +[\d,]+$", shown, re.MULTILINE)


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
    ("text", "words", "said"),
    [
        ("d_modl: 3", [], "config.yaml: d_modl: unknown key 'd_modl'; did you mean 'd_model'?"),
        ("encoder: {d_modl: 3}", [], "config.yaml: encoder.d_modl: unknown key"),
        ("encoder: {}\nd_model: 3", [], "config.yaml: d_model: belongs under encoder"),
        ("encoder: 3", [], "encoder: expected a mapping; got 3"),
        ("{}", ["--set", "d_model"], "expected dotted.key=value; got 'd_model'"),
        ("{}", ["--set", "=3"], "expected dotted.key=value; got '=3'"),
        ("{}", ["--set", "d_model=[1"], "not valid YAML"),
        ("{}", ["--set", "d_model.x=1"], "d_model"),
        ("d_model: 3", ["--set", "d_model.x=1"], "inside 'd_model', which is the plain value 3"),
        ("position: {name: learned, max_length: 4}", [], "max_length=4"),
    ],
)
def test_explain_refuses_what_is_wrong(
    capsys: Output, tmp_path: Path, text: str, words: list[str], said: str
) -> None:
    assert said in refused(capsys, "explain", config(tmp_path, text), *words)


def test_every_problem_is_printed(capsys: Output, tmp_path: Path) -> None:
    file = config(tmp_path, "{n_head: 3, n_layers: '2', d_model: 10, n_heads: 3}")
    shown = refused(capsys, "explain", file)
    assert "3 problems" in shown
    assert shown.count(file) == 3


def test_a_part_that_fails_on_the_sample_is_named(capsys: Output, tmp_path: Path) -> None:
    file = plugin(tmp_path, embed="index.nothing")
    words = ("explain", config(tmp_path, "position: mine"), "--import", file)
    shown = refused(capsys, *words)
    assert "encoder: fails on a sample batch: AttributeError" in shown


def test_draw_prints_a_row_for_each_query(capsys: Output) -> None:
    command("draw", "causal & window(radius=1)", "--size", "4")
    assert capsys.readouterr().out == "#...\n##..\n.##.\n..##\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["draw", "cusal"], "mask: no mask is named 'cusal'; did you mean 'causal'?"),
        (["draw", "dense"], "dense is made of a tensor"),
        (["draw", "causal", "--size", "0"], "greater than or equal to 1"),
        (["show", "positon", "rope"], "no kind is named 'positon'; did you mean 'position'"),
        (["show", "position", "roep"], "no position is named 'roep'; did you mean 'rope'"),
        (["list", "tasks"], "no kind is named 'tasks'"),
        (["list", "--import", "missing.py"], "import: missing.py: no such file"),
        (["explain", "missing.yaml"], "missing.yaml: config: cannot be read"),
        (["lst"], "No such command 'lst'"),
    ],
)
def test_a_wrong_word_is_one_error_and_exit_code_2(
    capsys: Output, words: list[str], said: str
) -> None:
    assert said in refused(capsys, *words).replace("\n", " ")


def test_a_reader_that_leaves_early_hears_no_complaint() -> None:
    run = f"{sys.executable} -m registry list | head -1"
    shown = subprocess.run(["bash", "-c", run], capture_output=True, text=True, check=True)
    assert (shown.stdout.count("\n"), shown.stderr) == (1, "")
