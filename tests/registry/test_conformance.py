"""`check` and `cases`: any class, registered or not, with strict waivers; the command."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
import torch
from torch import Tensor

from registry import (
    ConfigError,
    Registry,
    UnknownNameError,
    check,
    conformance,
    positions,
    readouts,
)
from registry.cli import main
from tests.messages import Messages
from variants import Dims
from variants.positions import Position, RoPE, Sinusoidal

pytestmark = pytest.mark.usefixtures("unchecked")
Output = pytest.CaptureFixture[str]
DIRECTION, DISTANCE = "declared_direction_is_true", "declared_distance_is_true"


class Wrong(RoPE):
    """It says that it sees no direction."""

    name = "wrong"
    sees_direction = False


def made(base: type = RoPE, **facts: Any) -> Any:
    return type("Made", (base,), {"name": "made", "__module__": __name__, **facts})


def status(part: type, promise: str) -> str:
    [result] = check(part, only=[promise]).results
    return result.status


def test_a_class_need_not_be_registered_and_is_not_afterwards() -> None:
    before = torch.get_rng_state()
    report = check(made(), dear=False)
    assert torch.equal(torch.get_rng_state(), before)
    assert report.ok
    assert report.title.startswith("position made: Made in ")
    assert {result.status for result in report.results} == {"kept", "not applicable"}
    assert "made" not in positions


def test_a_class_is_checked_itself_when_another_has_its_name() -> None:
    assert status(type("RoPE", (Wrong,), {"name": "rope"}), DIRECTION) == "broken"
    assert status(positions["rope"], DIRECTION) == "kept"


EXAMPLES = "the_examples_in_its_docstring_are_true"


@pytest.mark.parametrize(
    ("example", "said"),
    [
        (">>> 1 + 1\n3", "line 3 of its docstring, 1 + 1, gives 2, not 3"),
        (">>> None\n3", "line 3 of its docstring, None, gives nothing, not 3"),
        (">>> 1 + 1", "line 3 of its docstring, 1 + 1, gives 2, not nothing"),
        (">>> 1 / 0\n3", "line 3 of its docstring, 1 / 0, raises ZeroDivisionError: "),
        (">>> 2\n3\n>>> 4\n5\n>>> 6\n6", "2, gives 2, not 3 (and 1 more)"),
    ],
)
def test_an_example_that_is_not_true_is_told_with_what_it_gives(example: str, said: str) -> None:
    report = check(made(__doc__=f"An idea.\n\n{example}\n"), only=[EXAMPLES])
    assert said in report.results[0].detail


def test_what_is_broken_is_told_with_numbers() -> None:
    report = check(Wrong, only=[DIRECTION, DISTANCE])
    broken, kept = report.results
    assert not report.ok
    assert broken.detail.startswith(
        "sees_direction = False, but reversing the tokens moves the states by "
    )
    assert (kept.status, kept.detail) == ("kept", "")
    assert report.summary == "1 kept, 1 broken"
    assert "  broken          declared direction is true\n" in str(report)


def test_an_error_in_a_part_breaks_the_promise_and_tells_the_line() -> None:
    def fail(self: Any, index: Tensor) -> Tensor:
        return index / "two"  # type: ignore[operator]

    [result] = check(made(embed=fail), only=[DISTANCE]).results
    assert result.status == "broken"
    assert "TypeError: unsupported operand" in result.detail
    assert "test_conformance.py, line " in result.detail


def test_what_fails_without_a_capture_is_not_told_as_a_fault_of_the_capture() -> None:
    def fail(self: Any, index: Tensor) -> Tensor:
        return index / "two"  # type: ignore[operator]

    [result] = check(made(embed=fail), only=["it_is_captured_whole_by_dynamo"]).results
    assert result.status == "broken"
    assert result.detail.startswith("TypeError: unsupported operand")


def test_a_waiver_lets_a_broken_promise_pass_and_keeps_its_reason() -> None:
    report = check(made(Wrong, waives={DIRECTION: "it is a test"}), only=[DIRECTION])
    assert report.ok
    [result] = report.results
    assert result.status == "waived"
    assert result.detail.startswith("it is a test (sees_direction = False, but ")


@pytest.mark.parametrize(
    ("promise", "said"),
    [(DIRECTION, "kept"), ("rows_of_an_absolute_table_stay_distinct", "not applicable")],
)
def test_a_waiver_that_is_not_needed_is_what_is_broken(promise: str, said: str) -> None:
    report = check(made(waives={promise: "out of habit"}), only=[promise])
    assert not report.ok
    assert report.results[0].detail == f"it is {said}, so the waiver must go: out of habit"


def test_a_waiver_of_no_promise_is_an_error_that_names_the_nearest(messages: Messages) -> None:
    with messages.raises(UnknownNameError):
        check(made(waives={"declared_directions_is_true": "a slip"}))
    with messages.raises(TypeError):
        check(made(waives={DIRECTION: " "}))


def test_an_unknown_promise_is_an_error_that_names_the_nearest(messages: Messages) -> None:
    with messages.raises(UnknownNameError):
        check(RoPE, only=["declared_distances_are_true"])


@pytest.mark.parametrize(
    "part",
    [
        int,
        type("Nameless", (RoPE,), {}),
    ],
)
def test_what_is_no_part_is_refused(messages: Messages, part: type) -> None:
    with messages.raises(TypeError):
        check(part)


class Cornered(Sinusoidal):
    """Right with its defaults, wrong with one word of one option, or beyond one number."""

    name = "cornered"

    def __init__(
        self, dims: Dims, side: Literal["left", "right"] = "left", power: float = 1.0
    ) -> None:
        super().__init__(dims, base=1e4**power)
        self.distance_only = side == "right" or power > 2


def test_every_word_of_an_option_is_tried() -> None:
    [result] = check(Cornered, only=[DISTANCE]).results
    assert result.status == "broken"
    assert result.detail.startswith("with cornered(side='right'): distance_only = True, but ")


def test_the_examples_of_a_part_are_tried() -> None:
    class Numbered(Position):
        name = "numbered"
        examples: ClassVar = ({"power": 3.0},)

        def __init__(self, dims: Dims, power: float = 1.0) -> None:
            super().__init__(dims)
            self.inner = Cornered(dims, power=power)
            self.distance_only = self.inner.distance_only

        def embed(self, index: Tensor) -> Tensor:
            return self.inner.embed(index)

    [result] = check(Numbered, only=[DISTANCE]).results
    assert result.detail.startswith("with numbered(power=3.0): distance_only = True, but ")


def test_an_option_that_nobody_tells_must_be_told(messages: Messages) -> None:
    class Untold(Position):
        name = "untold"

        def __init__(self, dims: Dims, sizes: tuple[int, ...]) -> None:
            super().__init__(dims)

    with messages.raises(ConfigError):
        check(Untold)
    assert status(made(Untold, examples=({"sizes": (1, 2)},)), DISTANCE) == "broken"


def test_what_refuses_its_own_defaults_is_told() -> None:
    def __init__(self: Any, dims: Dims) -> None:  # noqa: N807
        raise ValueError("never")

    with pytest.raises(ConfigError, match="never"):
        check(made(__init__=__init__))


def test_cases_are_for_tests_of_ones_own(messages: Messages) -> None:
    found = dict(conformance.cases(Wrong))
    assert found[DISTANCE]().status == "kept"
    with messages.raises(AssertionError):
        found[DIRECTION]()
    assert [name for name, case in found.items() if case.promise.dear] == [
        "it_is_captured_whole_by_dynamo",
        "it_learns_what_it_can_express",
    ]


def test_a_table_brings_promises_of_its_own(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "colours").mkdir()
    for name, text in {
        "__init__": "",
        "colour": "class Colour:\n    name: str\n",
        "red": "from colours.colour import Colour\n\nclass Red(Colour):\n    name = 'red'\n",
        "promises": (
            "from registry.conformance.checks import require, promise\n\n"
            "@promise()\ndef it_is_bright(subject):\n"
            "    require(type(subject.make()).name == 'red', 'it is dull')\n"
        ),
    }.items():
        (tmp_path / "colours" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    table = Registry(
        *("colour", "colours", "colours.colour:Colour", "colours"),
        not_parts=frozenset({"promises"}),
        promises=("colours.promises",),
    )
    assert [(r.promise, r.status) for r in check(table["red"]).results] == [
        ("it_is_bright", "kept")
    ]
    dull = type("Dull", (table.contract,), {"name": "dull"})
    assert check(dull).results[0].detail == "it is dull"


FILE = """
from variants.positions import RoPE

class Fine(RoPE):
    name = "fine"

class {name}(RoPE):
    name = "other"
    sees_direction = {sees}
"""


@pytest.fixture
def run(tmp_path: Path, capsys: Output) -> Callable[..., tuple[int, str, str]]:
    def run(*words: str, **said: Any) -> tuple[int, str, str]:
        if said:
            (tmp_path / "mine.py").write_text(FILE.format(**said))
        with pytest.raises(SystemExit) as end:
            main(["check", *(word.replace("FILE", str(tmp_path / "mine.py")) for word in words)])
        shown = capsys.readouterr()
        return int(end.value.code or 0), shown.out, shown.err

    return run


Run = Callable[..., tuple[int, str, str]]


def test_the_command_prints_each_promise_of_one_part(run: Run) -> None:
    code, out, err = run("rope", "--only", DIRECTION, "--only", DISTANCE)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("position rope: RoPE in ")
    assert lines[1:] == [
        "  kept            declared direction is true",
        "  kept            declared distance is true",
        "2 kept",
    ]


def test_the_command_checks_every_part_of_a_file_and_exits_with_1(run: Run) -> None:
    code, out, _ = run("FILE", "--only", DIRECTION, name="Odd", sees=False)
    assert code == 1
    assert out.splitlines()[:3] == [
        "position fine: 1 kept",
        "position other: 1 broken",
        "  broken          declared direction is true",
    ]
    assert "fine" not in positions


@pytest.mark.parametrize("words", [("--kind", "readout"), ("readout",), ("readouts",)])
def test_the_command_checks_all_parts_of_a_kind(run: Run, words: tuple[str, ...]) -> None:
    code, out, _ = run(*words, "--only", "only_real_tokens_are_read")
    assert code == 0
    assert out.splitlines() == [f"readout {name}: 1 kept" for name in readouts]


def test_quick_leaves_out_what_takes_seconds(run: Run) -> None:
    code, out, _ = run("xavier", "--quick")
    assert code == 0
    assert "numbers come from the given generator alone" in out
    assert "learns" not in out


@pytest.mark.parametrize(
    "words",
    [
        ["roep"],
        ["roep", "--kind", "position"],
        ["rope", "--kind", "norm"],
        ["rope", "--only", "declared_order"],
        ["xavier", "--only", "it_learns"],
        ["missing.py"],
        ["registry.errors"],
        ["--kind", "positon"],
    ],
)
def test_a_wrong_word_is_exit_code_2(messages: Messages, run: Run, words: list[str]) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    messages(err)


def test_a_name_of_several_kinds_asks_for_one(run: Run) -> None:
    class Rope(positions["rope"]):  # type: ignore[misc]
        pass

    from registry import norms, register

    register(type("Twice", (norms.contract,), {"name": "rope", "__module__": __name__}))
    code, _, err = run("rope")
    assert code == 2
    assert "several kinds have a part named 'rope'; choose one with --kind: position, norm" in err
