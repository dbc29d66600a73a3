"""Batch normalization: torch's own on real tokens, and nothing of the padding."""

import pytest
import torch
from torch import Tensor, nn

from registry import ConfigError, EncoderConfig, build_encoder
from tests.messages import Messages
from variants import Dims, Encoder
from variants.norms.batchnorm import BatchNorm

DIMS = Dims(8, 1, 8, 1)


def inputs(seed: int = 0) -> Tensor:
    return 3 * torch.randn(4, 6, 8, generator=torch.Generator().manual_seed(seed)) + 1


def pair(momentum: float = 0.1) -> tuple[BatchNorm, nn.BatchNorm1d]:
    ours, own = BatchNorm(DIMS, eps=1e-3, momentum=momentum), nn.BatchNorm1d(8, 1e-3, momentum)
    with torch.no_grad():
        for layer in (ours, own):
            layer.weight.copy_(torch.linspace(0.5, 1.5, 8))
            layer.get_parameter("bias").copy_(torch.linspace(-1, 1, 8))
    return ours, own


def test_training_and_evaluation_are_those_of_torch() -> None:
    ours, own = pair()
    for seed in range(3):
        x, y = inputs(seed).requires_grad_(), inputs(seed).requires_grad_()
        out, expected = ours(x), own(y.flatten(0, 1)).unflatten(0, (4, 6))
        torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
        for one in (out, expected):
            (one * torch.arange(8)).square().sum().backward()
        torch.testing.assert_close(x.grad, y.grad, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(ours.running_mean, own.running_mean)
    torch.testing.assert_close(ours.running_variance, own.running_var)
    own.eval()
    expected = own(inputs(9).flatten(0, 1)).unflatten(0, (4, 6))
    torch.testing.assert_close(ours.eval()(inputs(9)), expected, rtol=1e-5, atol=1e-5)


def build(**changes: object) -> Encoder:
    sizes = {"vocab_size": 9, "d_model": 8, "n_heads": 2, "n_layers": 2, "pad_id": 0}
    return build_encoder({**sizes, "norm": "batchnorm", **changes}, seed=0)


def tokens(length: int = 5) -> Tensor:
    return torch.randint(1, 9, (3, length), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize(("left", "right"), [(0, 3), (2, 0), (1, 1)])
def test_padding_changes_neither_the_states_nor_the_statistics(
    placement: str, left: int, right: int
) -> None:
    plain, padded = build(norm_placement=placement), build(norm_placement=placement)
    row = nn.functional.pad(tokens(), (left, right))
    for _ in range(2):
        expected, hidden = plain(tokens()).hidden, padded(row).hidden
        real = hidden[:, left : left + 5]
        torch.testing.assert_close(real, expected, rtol=1e-4, atol=1e-5)
    for (path, one), (_, other) in zip(plain.named_buffers(), padded.named_buffers(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5, msg=path)
    assert (
        padded.blocks.get_submodule("0.joins.0")
        .get_submodule("before" if placement == "pre" else "after")
        .real
        is None
    )  # type: ignore[attr-defined]


def test_a_batch_of_pads_leaves_the_running_statistics_alone() -> None:
    encoder = build()
    before = {path: buffer.clone() for path, buffer in encoder.named_buffers()}
    hidden = encoder(torch.zeros(2, 4, dtype=torch.long)).hidden
    assert hidden.eq(0).all()
    for path, buffer in encoder.named_buffers():
        assert torch.equal(buffer, before[path]), path


def test_a_lone_token_is_its_own_mean() -> None:
    norm = BatchNorm(DIMS)
    x = torch.randn(1, 1, 8, requires_grad=True)
    out = norm(x)
    out.sum().backward()
    torch.testing.assert_close(out, torch.zeros(1, 1, 8))
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert norm.get_buffer("running_variance").isfinite().all()


def test_tokens_influence_one_another_in_training_alone() -> None:
    encoder, changed = build(mask="causal"), tokens()
    changed[:, -1] = changed[:, -1] % 8 + 1
    for training in (True, False):
        first, second = (encoder.train(training)(x).hidden[:, :-1] for x in (tokens(), changed))
        assert torch.allclose(first, second, atol=1e-6) != training


def test_statistics_of_half_precision_states_are_held_in_single() -> None:
    x = (300 + inputs() / 10).half()
    expected = BatchNorm(DIMS)(x.float())
    torch.testing.assert_close(BatchNorm(DIMS)(x).float(), expected, rtol=1e-2, atol=1e-2)


def test_a_checkpointed_block_would_count_its_batch_twice_and_is_refused(
    messages: Messages,
) -> None:
    with messages.raises(ConfigError):
        EncoderConfig(norm="batchnorm", gradient_checkpointing=True)


@pytest.mark.parametrize("momentum", [0.0, -0.1, 1.5])
def test_a_momentum_is_a_share(messages: Messages, momentum: float) -> None:
    with messages.raises(ValueError):
        BatchNorm(DIMS, momentum=momentum)
