"""Ready architectures: each is what its source says, and any key of it can be replaced."""

from pathlib import Path
from typing import Any

import pytest
import torch

from registry import ConfigError, EncoderConfig, UnknownNameError, build_encoder, masks, presets
from registry.cli import main
from registry.config import encoder_config, json_schema
from registry.presets import about, expanded, names
from registry.yaml_file import parse_yaml
from tests.messages import Messages

Output = pytest.CaptureFixture[str]

SMALL: dict[str, Any] = {"vocab_size": 12, "d_model": 16, "n_heads": 2, "n_layers": 2}

PARAMETERS = {
    # Tables; then each layer's attention, feed-forward and norms; then the final norm.
    "minimal_encoder": 32 * 64
    + 2 * (4 * (64 * 64 + 64) + (64 * 128 + 128) + (128 * 64 + 64) + 2 * 128),
    "vaswani_2017": 37000 * 512
    + 6 * (4 * (512 * 512 + 512) + (512 * 2048 + 2048) + (2048 * 512 + 512) + 2 * 1024),
    # `BertModel` of Hugging Face, bert-base-uncased, without its pooler has 108,891,648: with
    # vectors of two segments and a norm after the embeddings.
    "bert_style": 108_891_648 - 2 * 768 - 2 * 768,
    # `GPT2Model` of Hugging Face, gpt2, has these.
    "gpt_style": 124_439_808,
    "modern": 32000 * 768 + 12 * (4 * 768 * 768 + 3 * 768 * 2048 + 2 * 768) + 768,
    "ruoss_2023": 4 * 64 + 5 * (4 * (64 * 64 + 64) + (64 * 256 + 256) + (256 * 64 + 64) + 2 * 128),
    "kazemnejad_2023": 32128 * 768 + 12 * (4 * 768 * 768 + 2 * 768 * 3072 + 2 * 768) + 768,
}

FACTS: dict[str, dict[str, Any]] = {
    "minimal_encoder": {
        "position": "sinusoidal", "feedforward": "relu", "norm_placement": "post", "mask": "full",
        "initializer": "xavier", "embedding_scale": True, "dropout": 0.1,
    },
    "vaswani_2017": {
        "position": "sinusoidal", "feedforward": "relu", "norm_placement": "post", "mask": "full",
        "embedding_scale": True, "dropout": {"embedding": 0.1, "weights": 0.0, "sublayer": 0.1},
    },
    "bert_style": {
        "position": {"name": "learned", "max_length": 512}, "norm_placement": "post",
        "feedforward": {"name": "gelu", "d_ff": 3072}, "norm": {"name": "layernorm", "eps": 1e-12},
        "mask": "full", "readout": "first", "embedding_scale": False, "dropout": 0.1,
    },
    "gpt_style": {
        "position": {"name": "learned", "max_length": 1024}, "norm_placement": "pre",
        "feedforward": {"name": "gelu_tanh", "d_ff": 3072}, "mask": "causal",
        "initializer": "gpt2", "embedding_scale": False, "dropout": 0.1,
    },
    "modern": {
        "position": {"name": "rope", "pairing": "halves"}, "norm_placement": "pre",
        "norm": {"name": "rmsnorm", "eps": 1e-6}, "mask": "full", "bias": False, "dropout": 0.0,
    },
    "ruoss_2023": {
        "position": {"name": "sinusoidal", "layout": "concatenated"}, "norm_placement": "post",
        "feedforward": {"name": "relu", "d_ff": 256}, "n_layers": 5, "n_heads": 8, "d_model": 64,
        "embedding_scale": True, "mask": "full",
    },
    "kazemnejad_2023": {
        "position": "none", "norm_placement": "pre", "norm": {"name": "rmsnorm", "eps": 1e-6},
        "mask": "causal", "attention": {"name": "sdpa", "scale": "none"}, "bias": False,
        "initializer": "t5",
    },
}  # fmt: skip


def small(name: str, **more: Any) -> torch.nn.Module:
    width = {"feedforward": {"d_ff": 24}, **more}
    return build_encoder({"preset": name, **SMALL, **width}, seed=0)


def test_every_preset_is_tested() -> None:
    assert set(PARAMETERS) == set(FACTS) == set(names())


@pytest.mark.parametrize("name", names())
def test_a_preset_is_what_its_source_says(name: str) -> None:
    config = encoder_config(name)
    told = EncoderConfig(**FACTS[name])
    for key, fact in FACTS[name].items():
        if isinstance(fact, dict):
            for option, value in fact.items():
                assert getattr(getattr(config, key), option) == value, (key, option)
        else:
            found, expected = getattr(config, key), getattr(told, key)
            assert getattr(found, "name", found) == getattr(expected, "name", expected), key


@pytest.mark.parametrize("name", [n for n in names() if PARAMETERS.get(n, 0) < 1e6])
def test_a_small_preset_has_the_parameters_that_its_sizes_make(name: str) -> None:
    assert sum(one.numel() for one in build_encoder(name).parameters()) == PARAMETERS[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in names() if PARAMETERS[n] > 1e6])
def test_a_large_preset_has_the_parameters_of_its_source(name: str) -> None:
    assert sum(one.numel() for one in build_encoder(name).parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("name", names())
def test_a_preset_runs_forward_and_backward(name: str) -> None:
    encoder = small(name)
    out = encoder(torch.randint(1, 12, (2, 6), generator=torch.Generator().manual_seed(0)))
    out.readout.square().sum().backward()
    assert out.hidden.shape == (2, 6, 16)
    for path, parameter in encoder.named_parameters():
        assert parameter.grad is not None, path
        assert parameter.grad.isfinite().all(), path


@pytest.mark.parametrize("name", names())
def test_a_preset_says_what_it_is_its_source_and_what_differs(name: str) -> None:
    text = about(name)
    assert text.splitlines()[0].endswith(".")
    assert "Source: " in text
    assert "Differs from the source: " in text


def test_keywords_replace_keys_of_a_preset() -> None:
    encoder = build_encoder("minimal_encoder", n_layers=1, position="rope", seed=0)
    config = encoder.config
    assert (config.n_layers, config.position.name, config.d_model) == (1, "rope", 64)
    assert len(encoder.blocks) == 1


def test_a_preset_is_the_config_that_it_spells_out() -> None:
    with_preset = EncoderConfig(preset="ruoss_2023", n_layers=2)
    spelled = EncoderConfig(**{**expanded({"preset": "ruoss_2023"}), "n_layers": 2})
    assert with_preset == spelled
    assert "preset" not in with_preset.model_dump()


def test_single_options_of_a_part_of_a_preset_can_be_changed() -> None:
    config = EncoderConfig(
        preset="bert_style", position={"max_length": 64}, dropout={"weights": 0.0}
    )
    assert (config.position.name, config.position.options()["max_length"]) == ("learned", 64)
    assert (config.dropout.embedding, config.dropout.weights) == (0.1, 0.0)
    other = EncoderConfig(preset="bert_style", position={"name": "rope", "theta": 100.0})
    assert other.position.options()["theta"] == 100.0
    assert other.position.options()["pairing"] == "neighbours"


def test_an_unknown_preset_is_told_with_the_nearest_names(messages: Messages) -> None:
    with messages.raises(UnknownNameError):
        build_encoder("bert_stile")
    with pytest.raises(ConfigError) as caught:
        EncoderConfig(preset="bert_stile", d_model=16)
    [problem] = caught.value.problems
    assert (problem.key, problem.nearest) == ("preset", "bert_style")
    with messages.raises(ConfigError):
        EncoderConfig(preset=3)


def test_a_file_is_read_as_a_file(
    messages: Messages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain").write_text("{preset: minimal_encoder, d_model: 8}")
    monkeypatch.chdir(tmp_path)
    assert encoder_config("plain").d_model == encoder_config(tmp_path / "plain").d_model == 8
    with messages.raises(ConfigError):
        encoder_config("missing.yaml")
    with messages.raises(ConfigError):
        encoder_config(Path("bert_style"))


def test_what_a_key_gets_wrong_is_told_as_ever() -> None:
    with pytest.raises(ConfigError) as caught:
        build_encoder("minimal_encoder", n_head=2, n_heads=3)
    assert {problem.key for problem in caught.value.problems} == {"n_head", "n_heads"}


def command(*words: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert not end.value.code


def test_commands_take_the_name_of_a_preset(capsys: Output, tmp_path: Path) -> None:
    command("explain", "minimal_encoder", "--set", "position.base=50.0")
    shown = capsys.readouterr().out
    assert "d_model 64, d_head 16, d_ff 128" in shown
    assert "base=50.0" in shown
    command("draw", "gpt_style", "--size", "3")
    assert capsys.readouterr().out == "#..\n##.\n###\n"
    file = tmp_path / "study.yaml"
    file.write_text("encoder: {preset: minimal_encoder, mask: window(radius=1)}")
    command("draw", str(file), "--size", "3")
    assert capsys.readouterr().out == "##.\n###\n.##\n"
    command("diff", str(file), "minimal_encoder")
    shown = capsys.readouterr().out
    assert "window" in shown
    assert "d_model" not in shown


def test_presets_are_listed_shown_and_searched(capsys: Output) -> None:
    command("list", "presets")
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.splitlines()[1:]] == names()
    command("list", "--search", "Kazemnejad")
    assert "kazemnejad_2023" in capsys.readouterr().out
    command("show", "preset", "ruoss_2023")
    shown = capsys.readouterr().out
    assert "Source: Ruoss et al. 2023 (arXiv:2305.16843)" in shown
    assert parse_yaml(shown[shown.index("vocab_size:") :])["n_layers"] == 5


def test_the_schema_knows_the_presets() -> None:
    assert json_schema()["properties"]["preset"]["enum"] == names()


def test_no_preset_has_the_name_of_a_mask() -> None:
    # `draw` takes both.
    assert not {*names()} & {*masks}
    assert presets.FOLDER.is_dir()
