"""Acceptance on encoders that are right, and on such as have one fault each."""

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from registry import build_encoder
from store import Results
from studies.acceptance import STUDY, TASK, main
from studies.acceptance_checks import parity, structure
from studies.acceptance_checks.accept import CHECKS
from studies.acceptance_checks.check import Check, Finding, Subject
from studies.training.outcome import Work
from studies.training.settings import check_run
from variants.attentions import Explicit

CPU = torch.device("cpu")
HERE = "tests.studies.test_acceptance"
SMALL = {"d_model": 16, "n_heads": 2, "n_layers": 2, "feedforward": {"name": "relu", "d_ff": 32}}
POST = {**SMALL, "norm_placement": "post", "dropout": 0.1}


def subject(model: str | None = None, steps: int = 8, **encoder: Any) -> Subject:
    task = {**TASK, "alphabet": 6}
    sizes = {"vocab_size": 8, "n_classes": 2, "readout": "first", "pad_id": 0}
    made: dict[str, Any] = {"encoder": {**POST, **sizes, **encoder}}
    if model is not None:
        made = {"model": f"{HERE}:{model}"}
    training = {
        "steps": steps, "batch_size": 16, "learning_rate": 3e-3, "warmup_steps": 0,
        "train_lengths": [6, 6],
    }  # fmt: skip
    return Subject(
        Work(check_run({**made, "task": task, "training": training}), 0, CPU),
        overfit_examples=12,
        overfit_steps=200,
        overfit_rate=5e-3,
    )


def findings(about: Subject, *layers: str) -> dict[str, Finding]:
    return {one.name: one.try_on(about) for one in CHECKS if one.layer in layers or not layers}


def failed(found: Mapping[str, Finding]) -> set[str]:
    return {name for name, one in found.items() if one.status == "failed"}


def right(vocab_size: int, n_classes: int, **changed: Any) -> Any:
    sizes = {"vocab_size": vocab_size, "n_classes": n_classes, "readout": "first", "pad_id": 0}
    return build_encoder({**POST, **sizes, **changed})


class Backend(Explicit):
    """Attention written out, for faults."""

    name = "backend"


def with_backend(kind: type[Explicit], vocab_size: int, n_classes: int) -> Any:
    model = right(vocab_size, n_classes)
    model.attention = model.reference = kind(model.dims)
    return model


class OverQueries(Backend):
    def weights(self, q: Any, k: Any, prepared: Any) -> Any:
        return super().weights(q, k, prepared).softmax(dim=-2)


def softmax_over_queries(vocab_size: int, n_classes: int) -> Any:
    return with_backend(OverQueries, vocab_size, n_classes)


class ShareForAll(Backend):
    """Lays a tenth of each row on all keys alike, whatever the mask hides."""

    def weights(self, q: Any, k: Any, prepared: Any) -> Any:
        weights = super().weights(q, k, prepared)
        sees_some = weights.sum(dim=-1, keepdim=True) > 0
        return torch.where(sees_some, 0.9 * weights + 0.1 / weights.shape[-1], weights)


def weight_on_padding(vocab_size: int, n_classes: int) -> Any:
    return with_backend(ShareForAll, vocab_size, n_classes)


def inverted_mask(vocab_size: int, n_classes: int, **changed: Any) -> Any:
    model = right(vocab_size, n_classes, **changed)
    effective = model._effective

    def inverted(tokens: Tensor, mask: Any) -> Any:
        return effective(tokens, None if mask is None else ~mask)

    model.__dict__["_effective"] = inverted
    return model


def inverted_mask_and_rope(vocab_size: int, n_classes: int) -> Any:
    return inverted_mask(vocab_size, n_classes, position="rope")


def wrong_heads(vocab_size: int, n_classes: int) -> Any:
    model = right(vocab_size, n_classes)
    for block in model.blocks:
        block.attention.__dict__["_split"] = lambda x: rearrange(
            x, "batch seq (d_head heads) -> batch heads seq d_head", heads=2
        )
    return model


class AlwaysDropout(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, 0.1)


def dropout_in_evaluation(vocab_size: int, n_classes: int) -> Any:
    model = right(vocab_size, n_classes)
    model.blocks[1].dropout = AlwaysDropout()
    return model


class Detached(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x).detach()


def no_gradient(vocab_size: int, n_classes: int) -> Any:
    model = right(vocab_size, n_classes)
    model.blocks[1].feedforward = Detached(model.blocks[1].feedforward)
    return model


def a_nan(vocab_size: int, n_classes: int) -> Any:
    model = right(vocab_size, n_classes)
    with torch.no_grad():
        model.blocks[0].attention.to_v.weight[0, 0] = torch.nan
    return model


def other_seed(vocab_size: int, n_classes: int) -> Any:
    model = right(vocab_size, n_classes)
    with torch.no_grad():
        model.head.weight.add_(torch.randn(2, 16, generator=GENERATOR))
    return model


GENERATOR = torch.Generator().manual_seed(0)


class Blind(nn.Module):
    """Answers without a look."""

    def __init__(self, n_classes: int) -> None:
        super().__init__()
        self.score = nn.Parameter(torch.zeros(n_classes))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.score.expand(len(tokens), -1)


def blind(vocab_size: int, n_classes: int) -> nn.Module:
    return Blind(n_classes)


def answers_each_token(vocab_size: int, n_classes: int) -> Any:
    return right(vocab_size, n_classes, readout="tokens")


FAULTS = {
    "softmax_over_queries": ("numerics", "attention_rows_sum_to_one", "over queries instead of"),
    "weight_on_padding": ("numerics", "attention_rows_sum_to_one", "masked after the softmax"),
    "inverted_mask": ("parity", "a_mask_hides_what_it_hides_in_torch", "mask is inverted"),
    "wrong_heads": ("structure", "each_head_owns_its_channels", "(d_head heads)"),
    "dropout_in_evaluation": ("numerics", "evaluation_says_the_same_twice", "model.eval()"),
    "no_gradient": ("numerics", "every_part_gets_a_gradient", "detach"),
    "a_nan": ("numerics", "outputs_are_finite_at_every_length", "initializer"),
    "other_seed": ("learning", "the_same_seed_gives_the_same_losses", "nobody seeds"),
    "blind": ("learning", "a_few_examples_are_learned_by_heart", "does not see the tokens"),
    "answers_each_token": ("structure", "the_answers_have_one_score_for_each_class", "readout"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught_in_its_layer_with_what_to_suspect(fault: str) -> None:
    layer, check, suspect = FAULTS[fault]
    found = findings(subject(fault), layer)
    assert check in failed(found), found
    assert any(suspect in one for one in found[check].suspects)
    if layer != "learning":
        assert failed(found) <= {check} | ALSO.get(fault, set())


ALSO = {
    "a_nan": {
        "the_first_loss_is_that_of_an_even_guess", "every_part_gets_a_gradient",
        "evaluation_says_the_same_twice", "attention_rows_sum_to_one",
        "a_query_that_may_see_nothing_gets_nothing",
    },
    "softmax_over_queries": {"a_query_that_may_see_nothing_gets_nothing"},
    "answers_each_token": {"sequences_do_not_see_each_other"},
}  # fmt: skip
"""What a fault breaks besides."""


def test_a_layer_without_a_gradient_is_named() -> None:
    found = findings(subject("no_gradient"), "numerics")["every_part_gets_a_gradient"]
    assert found.detail == "no gradient reaches blocks.1.feedforward"


def test_wrong_heads_are_seen_by_parity_too() -> None:
    found = findings(subject("wrong_heads"), "parity")
    assert "outputs_are_those_of_the_layer_of_torch" in failed(found)


def test_a_mask_is_understood_without_torch_too() -> None:
    """Its layer has no rope: what the mask hides is seen to change the states all the same."""
    found = findings(subject("inverted_mask_and_rope"), "parity")
    assert (
        "that the mask hides change states" in found["a_mask_hides_what_it_hides_in_torch"].detail
    )


def test_a_right_encoder_passes_everything() -> None:
    found = findings(subject(dropout=0.0))
    assert {one.status for one in found.values()} == {"passed"}, found
    assert found["outputs_are_those_of_the_layer_of_torch"].numbers["parity_error"] < 1e-10


@pytest.mark.parametrize(
    ("encoder", "reason"),
    [
        ({"position": "rope"}, "position rope does more than add a vector"),
        ({"norm": "rmsnorm"}, "norm rmsnorm"),
        ({"feedforward": {"name": "swiglu", "d_ff": 32}}, "feed-forward swiglu"),
        ({"norm_placement": "rezero"}, "norm placement rezero"),
        ({"attention": {"name": "sdpa", "n_kv_heads": 1}}, "share keys and values"),
        ({"attention": {"name": "explicit", "scale": "none"}}, "scale none"),
        ({"bias": False}, "no bias"),
        ({"share_layers": True}, "share weights"),
    ],
    ids=["rope", "rmsnorm", "swiglu", "rezero", "shared", "unscaled", "no bias", "one block"],
)
def test_parity_says_why_torch_has_no_counterpart(encoder: Any, reason: str) -> None:
    found = findings(subject(**encoder), "parity")
    first, second = found.values()
    assert (first.status, second.status) == ("not applicable", "passed")
    assert reason in first.detail


@pytest.mark.parametrize(
    "encoder",
    [
        {"norm_placement": "pre", "feedforward": {"name": "gelu", "d_ff": 32}},
        {"mask": "causal", "position": {"name": "learned", "max_length": 16}},
        {"mask": "window(radius=2)", "position": "none", "attention": "chunked"},
        {"norm": {"name": "layernorm", "eps": 0.01}, "norm_placement": "pre"},
        {"feedforward": {"name": "gelu_tanh", "d_ff": 32}},
        {"feedforward": {"name": "silu", "d_ff": 32}, "norm_placement": "pre"},
    ],
    ids=["pre", "causal", "window", "eps", "tanh", "silu"],
)
def test_every_counterpart_gives_the_same_outputs(encoder: Any) -> None:
    found = findings(subject(**encoder), "parity")
    assert [one.status for one in found.values()] == ["passed", "passed"], found


def test_gains_that_start_at_zero_get_a_gradient_soon() -> None:
    found = findings(subject(norm_placement="rezero", position="rope"), "numerics")
    assert failed(found) == set()


def test_an_attention_that_refuses_a_mask_is_not_asked_about_it() -> None:
    found = findings(subject(attention="linear"), "numerics")
    assert failed(found) == set()
    assert found["a_query_that_may_see_nothing_gets_nothing"].status == "not applicable"


def test_a_module_of_another_kind_is_asked_what_it_can_be_asked() -> None:
    """One that answers every token, with a task that asks so."""
    training = STUDY.budgets["quick"].settings["training"]
    run = {"model": "examples.gru:build", "task": "shift", "training": training}
    found = findings(Subject(Work(check_run(run), 0, CPU)), "structure", "numerics", "parity")
    assert failed(found) == set()
    assert found["every_part_gets_a_gradient"].status == "passed"
    assert found["each_head_owns_its_channels"].status == "not applicable"


def test_a_model_that_breaks_down_has_failed_with_its_error() -> None:
    def breaks(about: Subject) -> Any:
        raise RuntimeError("no such key")

    found = Check("structure", breaks, ("this",)).try_on(subject())
    assert (found.status, found.detail) == ("failed", "RuntimeError: no such key")
    assert found.suspects == ("this",)


def test_every_check_says_what_to_suspect_and_is_a_metric() -> None:
    assert all(check.suspects for check in CHECKS)
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert [check.layer for check in CHECKS] == sorted(
        (check.layer for check in CHECKS),
        key=["structure", "numerics", "learning", "parity"].index,
    )


def call(folder: Path, *words: str) -> int:
    brief = [
        "--storage", f"sqlite:///{folder / 'a.db'}", "--set", "training.steps=3",
        "--set", "perform.overfit_steps=20", "--set", "perform.overfit_examples=4",
        "--set", "task.alphabet=6", "--set", "training.learning_rate=0.003",
    ]  # fmt: skip
    with pytest.raises(SystemExit) as end:
        main([*words, *brief])
    return int(end.value.code or 0)  # type: ignore[arg-type]


def test_what_was_found_is_printed_and_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studies.acceptance_checks.accept.CHECKS", structure.LAYER.checks)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    code = call(tmp_path, "--model", f"{HERE}:wrong_heads", "--report", str(tmp_path / "told"))
    torch.set_num_threads(before)
    out = capsys.readouterr().out
    assert code == 1
    assert "✗ each head owns its channels" in out
    assert "suspect: heads are split as (d_head heads)" in out

    [run] = Results(f"sqlite:///{tmp_path / 'a.db'}").runs(study="acceptance")
    assert (run.status, run.provenance["threads"]) == ("done", 1)
    kept = {one["check"]: one for one in run.provenance["acceptance"]}
    assert kept["each_head_owns_its_channels"]["status"] == "failed"
    scores = Results(f"sqlite:///{tmp_path / 'a.db'}").scores(study="acceptance")
    values = {one.metric: one.value for one in scores}
    assert values["each_head_owns_its_channels"] == 0
    assert values["sequences_do_not_see_each_other"] == 1
    page = (tmp_path / "told/report.md").read_text()
    assert "4 of 5 passed, 1 failed (structure: each head owns its channels)." in page
    assert "suspect: heads are split as (d_head heads)" in page
    assert (values["failed"], values["passed"]) == (1, len(structure.LAYER.checks) - 1)


def test_a_description_tells_every_check_and_asks_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(tmp_path, "--describe", "--preset", "modern") == 0
    told = capsys.readouterr().out
    assert "  structure: each head owns its channels\n    Queries of head h come from" in told
    assert all(check.name.replace("_", " ") in told for check in CHECKS)
    assert "encoder: {preset: modern}" in told
    assert not list(tmp_path.iterdir())


def test_a_preset_that_is_not_there_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(tmp_path, "--preset", "minimal_encodre") == 2
    assert "did you mean 'minimal_encoder'" in capsys.readouterr().err


def test_a_model_that_cannot_be_built_has_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(tmp_path, "--model", f"{HERE}:breaks") == 1
    assert "building the model failed: KeyError: 'head'" in capsys.readouterr().err
    [run] = Results(f"sqlite:///{tmp_path / 'a.db'}").runs(study="acceptance", status="failed")
    assert "building the model failed" in str(run.reason)


def test_a_run_that_was_killed_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*inputs: Any) -> None:
        raise SystemExit(143)

    monkeypatch.setattr("studies.acceptance_checks.accept.CHECKS", ())
    with monkeypatch.context() as patch:
        patch.setattr("studies.training.execute.execute", killed)
        patch.setattr(
            "studies.execution.worker.this_process", lambda: f"{platform.node()}/1/long ago"
        )
        assert call(tmp_path) == 143
    assert call(tmp_path) == 0
    [run] = Results(f"sqlite:///{tmp_path / 'a.db'}").runs(study="acceptance")
    assert (run.status, run.attempt) == ("done", 2)


def breaks(vocab_size: int, n_classes: int) -> nn.Module:
    raise KeyError("head")


@pytest.mark.parametrize(
    ("given", "place"),
    [("mask: causal", "last"), ("readout: tokens", "first")],
    ids=["causal", "tokens"],
)
def test_an_answer_is_read_where_it_can_be_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, place: str
) -> None:
    outside = [*structure.LAYER.checks, *parity.LAYER.checks]
    monkeypatch.setattr("studies.acceptance_checks.accept.CHECKS", outside)
    file = tmp_path / "mine.yaml"
    file.write_text(f"d_model: 16\nn_heads: 2\n{given}\n")
    call(tmp_path, "--config", str(file))
    [run] = Results(f"sqlite:///{tmp_path / 'a.db'}").runs(study="acceptance")
    assert run.config["encoder"]["readout"]["name"] == place
    assert run.config["task"]["answer_at"] == {"last": "appended", "first": "prepended"}[place]
    kept = {one["check"]: one["status"] for one in run.provenance["acceptance"]}
    assert set(kept.values()) == {"passed"}
