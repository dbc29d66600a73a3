"""Published tables: their numbers, their protocols, and files that break the rules."""

from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from registry import ConfigError, EncoderConfig, UnknownNameError
from registry.choices import resolve
from registry.config import encoder_config
from studies.published import Published, load, names
from studies.published.table import read
from studies.training.settings import Evaluation, Training, task_of

NAMES = [
    *("bhojanapalli_2020", "haviv_2022", "kazemnejad_2023", "peluche_2023", "ruoss_2023"),
    *("symmetries", "xiong_2020"),
]


def crossing(name: str) -> list[tuple[str, str]]:
    """Every row that is run in the first column, every column in the first such row."""
    table = load(name)
    rows = [row for row, overlay in table.rows.items() if overlay is not None]
    columns = [column for column, overlay in table.columns.items() if overlay is not None]
    pairs = [(row, column) for row in rows for column in columns if rows and columns]
    return [pair for pair in pairs if pair[0] == rows[0] or pair[1] == columns[0]]


RUNS = [
    pytest.param(name, row, column, id=f"{name}-{row}-{column}")
    for name in NAMES
    for row, column in crossing(name)
]


def value(table: Published, row: str, column: str) -> float:
    [cell] = [one for one in table.cells() if (one.row, one.column) == (row, column)]
    return cell.middle


def test_the_tables_are_listed_and_an_unknown_one_names_its_nearest() -> None:
    assert names() == NAMES
    with pytest.raises(UnknownNameError, match="'ruoss_2023'"):
        load("rouss_2023")


@pytest.mark.parametrize("name", NAMES)
def test_a_table_says_where_it_is_printed(name: str) -> None:
    table = load(name)
    assert table.arxiv or table.url
    assert (table.arxiv or table.url or "") in table.source
    assert list(table.cells()) or table.claims
    assert table.verified or "memory" in table.note


@pytest.mark.parametrize(
    ("name", "row", "column", "number"),
    [
        ("ruoss_2023", "even_pairs", "alibi", 67.3),
        ("ruoss_2023", "reverse_string", "randomized_relative", 95.1),
        ("ruoss_2023", "bucket_sort", "randomized_learned", 99.5),
        ("haviv_2022", "masked_pile", "none", 147.18),
        ("haviv_2022", "causal_wikitext103", "alibi", 19.71),
        ("bhojanapalli_2020", "heads_32", "squad_em", 83.48),
        ("peluche_2023", "copy", "none", 0.08),
        ("peluche_2023", "copy", "alibi_symmetric_causal", 0.2875),
        ("xiong_2020", "layers_12", "post", 1.6),
    ],
)
def test_numbers_stand_at_their_place(name: str, row: str, column: str, number: float) -> None:
    assert value(load(name), row, column) == pytest.approx(number)


def test_ruoss_agrees_with_the_abstract_and_with_the_table_before_it() -> None:
    table = load("ruoss_2023")
    rows = [[value(table, row, column) for column in table.columns] for row in table.rows]
    gains = [max(row[6:]) - max(row[:6]) for row in rows]
    assert mean(gains) == pytest.approx(12.0, abs=0.05)
    before = {
        "modular_arithmetic_simple": 24.2, "parity_check": 52.0, "cycle_navigation": 61.9,
        "reverse_string": 62.3, "stack_manipulation": 57.5, "duplicate_string": 52.8,
        "odds_first": 52.8,
    }  # fmt: skip
    for row, best in before.items():
        first = [value(table, row, column) for column in list(table.columns)[:5]]
        assert max(first) == pytest.approx(best, abs=0.11)
    assert not table.verified
    assert not any(cell.verified for cell in table.cells())


def test_kazemnejad_has_the_means_of_the_raw_results() -> None:
    table = load("kazemnejad_2023")
    means = {
        column: mean(value(table, row, column) for row in table.rows) for column in table.columns
    }
    expected = {
        "nope": 0.568, "t5_relative_bias": 0.505, "alibi": 0.254, "rope_partial_25pct": 0.025,
        "sinusoidal": 0.013,
    }  # fmt: skip
    assert means == pytest.approx(expected, abs=6e-4)
    assert all(cell.spread is not None for cell in table.cells())


def test_a_range_keeps_both_ends() -> None:
    cells = {cell.column: cell for cell in load("peluche_2023").cells()}
    assert (cells["sinusoidal"].lowest, cells["sinusoidal"].highest) == (0.945, 1.0)
    assert cells["sinusoidal"].value is None


def test_claims_lie_between_their_bounds() -> None:
    own = [claim for claim in load("xiong_2020").claims if claim.against is None]
    claims = {claim.column: claim for claim in own}
    assert {column: claim.value for column, claim in claims.items()} == {
        "post": 0.0, "pre": -0.5, "deepnorm": -0.5,
    }  # fmt: skip
    assert not claims["deepnorm"].verified


@pytest.mark.parametrize(
    ("name", "row", "column", "changes"),
    [
        ("ruoss_2023", "even_pairs", "sin_cos", {}),
        ("kazemnejad_2023", "rsc", "nope", {}),
        (
            "kazemnejad_2023", "rsc", "t5_relative_bias",
            {"position": {"name": "t5_bias", "num_buckets": 32, "bidirectional": False}},
        ),
        ("kazemnejad_2023", "rsc", "alibi", {"position": {"name": "alibi", "sides": "causal"}}),
    ],
)  # fmt: skip
def test_an_encoder_of_the_literature_is_one_and_the_same_wherever_it_is_written(
    name: str, row: str, column: str, changes: dict[str, Any]
) -> None:
    """The presets of these names were read in the code of the authors."""
    settings = load(name).settings(row, column)
    assert settings is not None
    here = encoder_config({**settings["encoder"], "vocab_size": 9, "pad_id": 0})
    assert here == encoder_config(name, vocab_size=9, **changes)


@pytest.mark.parametrize(("name", "row", "column"), RUNS)
def test_a_protocol_is_one_that_we_can_run(name: str, row: str, column: str) -> None:
    settings = load(name).settings(row, column)
    assert settings is not None
    task = task_of(resolve("task", settings["task"]))
    encoder = {**settings["encoder"], "vocab_size": task.vocab_size, "n_classes": task.n_classes}
    config = EncoderConfig(**encoder, readout=task.readout)
    training = Training(**settings["training"])
    longest = training.train_lengths[1]
    if "evaluation" in settings:
        longest = max(longest, *Evaluation(**settings["evaluation"]).test_lengths)
    assert task.seq(longest) <= config.position.options().get("max_length", 10**9)
    assert not task.causal or config.mask.name == "causal"


def test_what_is_not_run_here_has_no_settings_but_keeps_its_numbers() -> None:
    table = load("ruoss_2023")
    assert table.settings("solve_equation", "none") is None
    assert value(table, "solve_equation", "none") == 20.1
    assert "brackets" in table.protocol.left_out


def test_a_range_of_lengths_is_written_out() -> None:
    settings = load("ruoss_2023").settings("even_pairs", "none")
    assert settings is not None
    assert settings["evaluation"]["test_lengths"] == list(range(41, 501))


BROKEN: list[tuple[str, Callable[[str], str], str]] = [
    ("one number short", lambda s: s.replace("[20.97, ", "["), "values.causal_wikitext103.*4"),
    ("a row of its own", lambda s: s + "  other: [1.0, 1.0, 1.0, 1.0]\n", "'other'"),
    ("a text", lambda s: s.replace("20.97", "about 20"), "values"),
    ("below zero", lambda s: s.replace("20.97", "-1.0"), "between 0"),
    ("not a number", lambda s: s.replace("20.97", ".nan"), "values"),
    ("a key twice", lambda s: s + "title: Another\n", "YAML"),
    ("an unknown key", lambda s: s + "verfied: true\n", "verfied"),
    ("no source", lambda s: s.replace('arxiv: "2203.16634"', ""), "arxiv or url"),
    (
        "no reason",
        lambda s: s.replace("  left_out: The second", "  budgets: The second"),
        "budgets",
    ),
    (
        "nothing said",
        lambda s: "\n".join(line for line in s.splitlines() if "left_out" not in line),
        "left_out",
    ),
    (
        "another root",
        lambda s: s.replace("causal_wikitext103: {encoder:", "causal_wikitext103: {encodr:"),
        "encodr",
    ),
    ("another direction", lambda s: s.replace("better: lower", "better: down"), "better"),
    (
        "a budget of nothing",
        lambda s: s.replace("    quick: {", "    quick: {rows: [here], "),
        "'here'",
    ),
    ("a claim of nothing", lambda s: s + CLAIM.format(column="rope", value=1.0), "'rope'"),
    ("a claim out of bounds", lambda s: s + CLAIM.format(column="none", value=9.0), "bounds"),
]
CLAIM = (
    "claims:\n- {{about: x, column: {column}, value: {value}, low: 0.0, high: 2.0, place: y, "
    "verified: true}}\n"
)


@pytest.mark.parametrize(("what", "broken", "told"), BROKEN, ids=[one[0] for one in BROKEN])
def test_a_file_that_breaks_a_rule_is_refused(
    what: str, broken: Callable[[str], str], told: str, tmp_path: Path
) -> None:
    right = Path(__file__).parents[3] / "studies/published/haviv_2022.yaml"
    text = right.read_text(encoding="utf-8")
    file = tmp_path / "mine.yaml"
    file.write_text(text, encoding="utf-8")
    assert read(file) == load("haviv_2022")

    file.write_text(broken(text), encoding="utf-8")
    assert file.read_text(encoding="utf-8") != text
    with pytest.raises(ConfigError, match=told) as caught:
        read(file)
    assert str(file) in str(caught.value)
