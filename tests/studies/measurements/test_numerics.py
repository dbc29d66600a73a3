"""Errors against float64, on attentions whose error is known."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from registry import register
from studies.measurements.numerics import draw, measure, roundoff
from studies.training.outcome import Outcome, Work
from studies.training.settings import check_run
from tests.messages import Messages
from variants.attentions import Explicit

CPU = torch.device("cpu")


def run(dtype: str = "float32", lengths: tuple[int, ...] = (16,), **options: Any) -> Outcome:
    data = {
        "perform": {"name": "studies.measurements.numerics:measure", **options},
        "training": {"dtype": dtype, "steps": 0},
        "evaluation": {"test_lengths": list(lengths)},
    }
    config = check_run(data)
    assert config.perform is not None
    return measure(Work(config, 0, CPU), **config.perform.options())


def value(outcome: Outcome, metric: str, length: int = 16) -> float:
    (found,) = (one.value for one in outcome.scores if (one.metric, one.length) == (metric, length))
    assert found is not None
    return found


def test_the_unit_is_half_the_distance_from_one_to_the_next_number() -> None:
    assert roundoff(torch.float32) == 2.0**-24
    assert roundoff(torch.bfloat16) == 2.0**-8
    assert roundoff(torch.float16) == 2.0**-11


def test_the_reference_has_no_error_against_itself() -> None:
    outcome = run("float64", attention="explicit")
    for name in ("forward", "q_grad", "k_grad", "v_grad"):
        assert value(outcome, f"{name}_rms") == value(outcome, f"{name}_max") == 0


class Rounded(Explicit):
    """Attention in float64, rounded once."""

    name = "rounded"

    def forward(self, q: Any, k: Any, v: Any, prepared: Any, dropout: float = 0.0) -> Any:
        exact = super().forward(q.double(), k.double(), v.double(), prepared, dropout)
        return exact.to(q.dtype)


class Off(Explicit):
    """Attention whose every output is too large by one part in 1,024."""

    name = "off"

    def forward(self, q: Any, k: Any, v: Any, prepared: Any, dropout: float = 0.0) -> Any:
        return super().forward(q, k, v, prepared, dropout) * (1 + 2.0**-10)


def test_rounding_an_exact_result_once_costs_at_most_one() -> None:
    register(Rounded)
    for dtype in ("float32", "bfloat16"):
        assert 0.2 < value(run(dtype, attention="rounded"), "forward_rms") < 1


def test_the_reference_starts_from_the_rounded_inputs() -> None:
    """What an exact result off by its own rounding alone has, by torch's formula in float64."""
    register(Rounded)
    config = check_run({"training": {"dtype": "bfloat16", "steps": 0}})
    drawn = draw(Work(config, 0, CPU), (2, 4, 16, 32), 1.0).to(torch.bfloat16)
    q, k, v = (one.double() for one in (drawn.q, drawn.k, drawn.v))
    exact = F.scaled_dot_product_attention(q, k, v)
    error = (exact.to(torch.bfloat16).double() - exact).norm() / exact.norm()
    found = value(run("bfloat16", attention="rounded"), "forward_rms")
    assert found == pytest.approx(error.item() * 2**8, rel=1e-3)


def test_a_known_relative_error_is_measured_as_such() -> None:
    register(Off)
    outcome = run(attention="off")
    assert value(outcome, "forward_rms") == pytest.approx(2.0**14, rel=1e-2)
    assert value(outcome, "v_grad_rms") == pytest.approx(2.0**14, rel=1e-2)


@pytest.mark.parametrize("attention", ["explicit", "sdpa"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_errors_are_a_few_roundings_in_every_dtype(attention: str, dtype: str) -> None:
    outcome = run(dtype, lengths=(16, 64), attention=attention)
    for name in ("forward", "q_grad", "k_grad", "v_grad"):
        for length in (16, 64):
            assert 0.05 < value(outcome, f"{name}_rms", length) < 16


def test_flat_scores_have_the_entropy_of_even_weights() -> None:
    assert value(run(logit_scale=1e-6), "entropy") == pytest.approx(1, abs=1e-9)
    # A causal query of index t sees t + 1 keys; the share is of what even weights over these have.
    assert value(run(logit_scale=1e-6, mask="causal"), "entropy") == pytest.approx(1, abs=1e-9)


def test_without_the_scale_wide_heads_look_at_few_keys() -> None:
    scaled, unscaled = (
        value(run(d_head=128, scaled=scaled, lengths=(64,)), "entropy", 64)
        for scaled in (True, False)
    )
    assert scaled > 0.8
    assert unscaled < 0.3


def test_the_scale_of_scores_is_the_same_thing_said_twice() -> None:
    # Without 1/√d_head, queries that are smaller by that factor give the same weights.
    left = run("float64", d_head=16, scaled=False, logit_scale=0.25)
    right = run("float64", d_head=16, scaled=True)
    assert value(left, "entropy") == pytest.approx(value(right, "entropy"), rel=1e-9)


def test_a_kernel_that_is_not_there_is_not_applicable_and_says_so() -> None:
    outcome = run(attention="sdpa", kernel="cudnn")
    assert (outcome.status, outcome.scores) == ("not_applicable", [])
    assert outcome.reason is not None
    assert "no cudnn kernel" in outcome.reason


class Huge(Explicit):
    """Attention that no memory is large enough for."""

    name = "huge"

    def forward(self, q: Any, k: Any, v: Any, prepared: Any, dropout: float = 0.0) -> Any:
        raise torch.OutOfMemoryError("tried to allocate a lot")


def test_a_kernel_that_runs_out_of_memory_is_there_all_the_same(messages: Messages) -> None:
    register(Huge)
    with messages.raises(torch.OutOfMemoryError):
        run(attention="huge", kernel="math")


def test_every_metric_has_a_title_with_its_unit() -> None:
    from studies.attention_numerics import METRICS

    assert {one.metric for one in run().scores} == set(METRICS)
