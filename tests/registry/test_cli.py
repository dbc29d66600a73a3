"""The command line: what each command prints, and how it fails."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from registry.cli import main
from registry.registry import REGISTRIES
from tests.messages import Messages

Output = pytest.CaptureFixture[str]

MINE = '''
from registry import register
from variants.positions import Position
from tests.messages import Messages

@register
class Mine(Position):
    """My own idea."""

    name = "mine"
    sees_direction = False

    def embed(self, index):
        return None
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


def plugin(folder: Path) -> str:
    file = folder / "mine.py"
    file.write_text(MINE)
    return str(file)


@pytest.mark.parametrize("words", [[], ["list"], ["show"], ["explain"], ["draw"]])
def test_help_and_lists_import_nothing_heavy(words: list[str]) -> None:
    code = (
        "import sys\nfrom registry.cli import main\n"
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
        assert f"{kind}: {REGISTRIES[kind].about}" in shown
        for name, part in REGISTRIES[kind].items():
            line = (part.__doc__ or "").split("\n")[0]
            assert re.search(rf"^  {name} +{re.escape(line)}$", shown, re.MULTILINE)
    assert "--import studies.tasks" in shown


@pytest.mark.parametrize("kind", ["position", "positions"])
def test_list_takes_a_kind_in_either_number(capsys: Output, kind: str) -> None:
    command("list", kind)
    shown = capsys.readouterr().out
    assert shown.startswith("position: ")
    assert "layernorm" not in shown


def test_a_search_looks_in_names_and_docstrings(capsys: Output) -> None:
    command("list", "--search", "ROTARY")
    shown = capsys.readouterr().out
    assert shown.startswith("position: ")
    assert re.search(r"^  rope ", shown, re.MULTILINE)
    assert "norm:" not in shown
    command("list", "norm", "--search", "rotary")
    assert capsys.readouterr().out == "no part mentions 'rotary'\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "--search", "rotry"], "no part mentions 'rotry'; did you mean 'rotary'?"),
        (["list", "positions", "--search", "sinusodal"], "did you mean 'sinusoidal'"),
        (["list", "presets", "--search", "kazemnajad"], "did you mean 'kazemnejad"),
    ],
)
def test_a_search_without_a_hit_names_a_word_that_is_near(
    capsys: Output, words: list[str], said: str
) -> None:
    command(*words)
    assert said in capsys.readouterr().out


def test_a_search_for_nothing_like_a_word_names_none(capsys: Output) -> None:
    command("list", "norm", "--search", "qqqqq")
    assert capsys.readouterr().out == "no part mentions 'qqqqq'\n"


@pytest.mark.parametrize("name", ["rope", "layernorm", "bert_style", "prefix"])
def test_show_needs_no_kind_where_a_name_is_unique(capsys: Output, name: str) -> None:
    kinds = {"rope": "position", "layernorm": "norm", "bert_style": "preset", "prefix": "mask"}
    command("show", name)
    alone = capsys.readouterr().out
    command("show", kinds[name], name)
    assert alone == capsys.readouterr().out


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


def test_draw_prints_a_row_for_each_query(capsys: Output) -> None:
    command("draw", "causal & window(radius=1)", "--size", "4")
    assert capsys.readouterr().out == "#...\n##..\n.##.\n..##\n"


@pytest.mark.parametrize(
    "words",
    [
        ["draw", "cusal"],
        ["draw", "dense"],
        ["show", "positon", "rope"],
        ["show", "position", "roep"],
        ["show", "roep"],
        ["show", "none"],
        ["show", "sandwich"],
        ["show", "positions"],
        ["show", "position", "rope", "alibi"],
        ["list", "colours"],
        ["list", "--import", "missing.py"],
        ["explain", "missing.yaml"],
    ],
)
def test_a_wrong_word_is_one_error_and_exit_code_2(
    messages: Messages, capsys: Output, words: list[str]
) -> None:
    messages(refused(capsys, *words))


@pytest.mark.parametrize(
    ("words", "named"), [(["draw", "causal", "--size", "0"], "--size"), (["lst"], "lst")]
)
def test_what_no_command_takes_is_named(capsys: Output, words: list[str], named: str) -> None:
    assert f"'{named}'" in refused(capsys, *words)


def test_a_reader_that_leaves_early_hears_no_complaint() -> None:
    run = f"{sys.executable} -m registry list | head -1"
    shown = subprocess.run(["bash", "-c", run], capture_output=True, text=True, check=True)
    assert (shown.stdout.count("\n"), shown.stderr) == (1, "")


def test_the_page_of_parts_is_what_the_command_prints() -> None:
    command = [sys.executable, "-m", "registry", "list", "--markdown"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    page = Path(__file__).parents[2] / "docs" / "parts.md"
    assert page.read_text(encoding="utf-8") == shown, f"{' '.join(command[1:])} > docs/parts.md"
