"""Training: loss, weight decay, clipping, data order, and stopping when numbers are lost."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from registry import build_encoder
from studies.scoring import batch_loss, mean_loss
from studies.seeds import Seeds
from studies.tasks.shift import Shift
from studies.training.data import padded
from studies.training.loop import (
    Curves,
    DivergedError,
    batches,
    finite,
    gradient_norm,
    parameter_groups,
    train,
)
from studies.training.settings import Training
from tests.messages import Messages

CPU = torch.device("cpu")
TASK = Shift(k=1, alphabet=4)
SMALL = {"vocab_size": 5, "n_classes": 4, "d_model": 8, "n_heads": 2, "n_layers": 1}


def fit(training: Training, seed: int = 0, **encoder: object) -> tuple[nn.Module, Curves]:
    seeds = Seeds(0, seed)
    model = build_encoder(SMALL, seed=seeds.seed("init"), **encoder)
    curves = Curves(training.steps)
    train(model, TASK, training, 8, seeds, CPU, curves)
    return model, curves


def test_the_loss_is_a_mean_over_scored_answers() -> None:
    # One token with loss 3 and nine with mean loss 1 give 12 / 10, however they are batched.
    wanted = torch.tensor([3.0] + [1.0] * 9)
    logits = torch.stack([-torch.log(torch.exp(wanted) - 1), torch.zeros(10)], dim=-1)
    targets = torch.zeros(10, dtype=torch.long)
    padded_logits = torch.cat([logits, torch.randn(6, 2)])
    padded_targets = torch.cat([targets, torch.full((6,), -100)])

    loss = mean_loss(padded_logits.reshape(2, 8, 2), padded_targets.reshape(2, 8))

    assert loss.item() == pytest.approx(1.2, abs=1e-6)


def test_the_loss_of_several_answers_a_place_is_that_of_each_alone() -> None:
    torch.manual_seed(0)
    logits, targets = torch.randn(2, 3, 4 * 5), torch.randint(5, (2, 3, 4))
    targets[0, 0, :3] = -100

    alone = [
        F.cross_entropy(logits[i, t, 5 * k : 5 * k + 5], targets[i, t, k])
        for i in range(2)
        for t in range(3)
        for k in range(4)
        if targets[i, t, k] != -100
    ]

    assert len(alone) == 21
    assert mean_loss(logits, targets).item() == pytest.approx(torch.stack(alone).mean().item())


def test_a_batch_without_scored_answers_has_loss_zero_and_finite_gradients() -> None:
    logits = torch.randn(2, 3, 4, requires_grad=True)

    loss = mean_loss(logits, torch.full((2, 3), -100))
    loss.backward()

    assert loss.item() == 0
    assert logits.grad is not None
    assert torch.equal(logits.grad, torch.zeros_like(logits))


def test_the_loss_does_not_take_the_logarithm_of_a_probability_that_vanished() -> None:
    assert mean_loss(torch.tensor([[1000.0, 0.0]]), torch.tensor([1])).item() == 1000.0


def test_ignored_targets_do_not_leave_the_softmax() -> None:
    loss = mean_loss(torch.tensor([[2.0, 1.0, 1.0]]), torch.tensor([1]))

    assert loss.item() == pytest.approx(1.5514, abs=1e-4)


@pytest.mark.parametrize("target", [-4, 3])
def test_a_target_that_is_no_class_is_refused(target: int) -> None:
    with pytest.raises(IndexError, match=f"Target {target} is out of bounds"):
        mean_loss(torch.zeros(1, 2, 3), torch.tensor([[0, target]]))


def test_weight_decay_acts_on_matrices_alone() -> None:
    model = build_encoder(SMALL, seed=0)

    decayed, spared = parameter_groups(model.parameters(), 0.5)

    assert {one.ndim for one in decayed["params"]} == {2}
    assert {one.ndim for one in spared["params"]} == {1}
    assert (decayed["weight_decay"], spared["weight_decay"]) == (0.5, 0.0)
    assert len(decayed["params"]) + len(spared["params"]) == len(list(model.parameters()))


def test_the_gradient_is_clipped_to_its_norm() -> None:
    parameter = nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([3.0, 4.0])

    assert gradient_norm({"weight": parameter}, 1.0, step=1) == pytest.approx(5.0)
    assert torch.allclose(parameter.grad, torch.tensor([0.6, 0.8]))


def test_without_a_limit_the_gradient_stays() -> None:
    parameter = nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([3.0, 4.0])

    gradient_norm({"weight": parameter}, None, step=1)

    assert torch.equal(parameter.grad, torch.tensor([3.0, 4.0]))


def test_a_lost_gradient_is_named_with_its_step(messages: Messages) -> None:
    sound, lost = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))
    sound.grad, lost.grad = torch.zeros(2), torch.tensor([1.0, math.nan])

    with messages.raises(DivergedError):
        gradient_norm({"blocks.0.good": sound, "blocks.0.bad": lost}, 1.0, step=7)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_lost_loss_is_named_with_its_step(messages: Messages, value: float) -> None:
    with messages.raises(DivergedError):
        finite(torch.tensor(value), step=3)


def test_a_learning_rate_that_is_far_too_high_ends_as_diverged() -> None:
    training = Training(steps=200, learning_rate=1e30, warmup_steps=0, clip_norm=None)

    with pytest.raises(DivergedError, match=r"^step \d+: "):
        fit(training)


def test_training_learns_what_the_encoder_can_express() -> None:
    _, curves = fit(Training(steps=250, learning_rate=1e-2, train_lengths=(4, 4)), position="rope")

    losses = [point.value for point in curves.points if point.metric == "loss"]
    assert losses[0] > 1.2
    assert losses[-1] < 0.1


def test_a_batch_depends_on_replicate_and_step_alone() -> None:
    long = list(batches(TASK, Training(steps=6), Seeds(0, 0)))
    torch.manual_seed(123)
    short = list(batches(TASK, Training(steps=6), Seeds(0, 0)))

    assert all(torch.equal(one.tokens, two.tokens) for one, two in zip(long, short, strict=True))
    other = next(batches(TASK, Training(steps=6), Seeds(0, 1)))
    assert other.tokens.shape != long[0].tokens.shape or not torch.equal(
        other.tokens, long[0].tokens
    )


def test_lengths_cover_the_training_range_and_stay_within_it() -> None:
    training = Training(steps=300, train_lengths=(2, 5))

    lengths = {batch.tokens.shape[1] for batch in batches(TASK, training, Seeds(0, 0))}

    assert lengths == {2, 3, 4, 5}


def test_lengths_without_answers_are_left_out() -> None:
    training = Training(steps=100, train_lengths=(2, 6))

    lengths = {batch.tokens.shape[1] for batch in batches(Shift(k=3), training, Seeds(0, 0))}

    assert lengths == {4, 5, 6}


def test_two_trainings_of_one_replicate_are_equal_bit_for_bit() -> None:
    training = Training(steps=8)

    first, _ = fit(training, dropout=0.2)
    torch.manual_seed(99)
    second, _ = fit(training, dropout=0.2)

    for one, two in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, two)


def test_training_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    fit(Training(steps=3), dropout=0.2)

    assert torch.equal(torch.rand(1), expected)


def test_curves_hold_means_and_end_at_the_last_step() -> None:
    curves = Curves(steps=103)
    for step in range(1, 104):
        curves.add(step, loss=float(step))

    points = [(point.step, point.value) for point in curves.points]
    assert points[:2] == [(2, 1.5), (4, 3.5)]
    assert points[-1] == (103, 103.0)


def test_a_training_step_is_the_one_that_torch_would_do() -> None:
    """One step by hand: mean loss, AdamW's first step, decay on the matrix alone."""
    training = Training(steps=1, learning_rate=0.1, warmup_steps=0, weight_decay=0.5, final_rate=1)
    seeds = Seeds(0, 0)
    before = build_encoder(SMALL, seed=seeds.seed("init"))
    after, _ = fit(training)
    batch = next(batches(TASK, training, seeds))

    logits = before(batch.tokens).logits
    loss = F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=-100)
    loss.backward()
    nn.utils.clip_grad_norm_(before.parameters(), 1.0)

    for (name, old), new in zip(before.named_parameters(), after.parameters(), strict=True):
        assert old.grad is not None
        decay = 0.5 if old.ndim == 2 else 0.0
        step = 0.1 * old.grad / (old.grad.abs() + 1e-8)
        expected = old * (1 - 0.1 * decay) - step
        torch.testing.assert_close(new, expected, atol=2e-5, rtol=1e-4, msg=name)


def test_padding_does_not_change_what_a_batch_of_several_lengths_teaches() -> None:
    """The loss of a padded batch is that of its parts, weighted by their scored answers."""
    generator = torch.Generator().manual_seed(0)
    model = build_encoder(SMALL, seed=0, position="rope", pad_id=0).double()
    parts = [TASK.sample(generator, 3, length) for length in (4, 9)]

    whole = batch_loss(model, padded(parts), CPU)

    losses = [batch_loss(model, part, CPU) for part in parts]
    answers = [3 * 3, 3 * 8]
    expected = sum(n * one for n, one in zip(answers, losses, strict=True)) / sum(answers)
    torch.testing.assert_close(whole, expected)
