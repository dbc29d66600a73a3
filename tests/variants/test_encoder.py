"""The skeleton: what goes in, what comes out, and what stays as it is."""

from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import registry
from registry import build_encoder
from tests.messages import Messages
from variants import Dims, Encoder, EncoderOutput
from variants.masks import Causal, Dense, Documents, Padding, Window
from variants.positions import Position

SOFTMAX = [name for name, one in registry.attentions.items() if one.softmax]


def build(seed: int = 0, **changes: Any) -> Encoder:
    sizes = {"vocab_size": 10, "d_model": 16, "n_heads": 2, "n_layers": 2, "pad_id": 0}
    return build_encoder({**sizes, **changes}, seed=seed)


def tokens(batch: int = 2, length: int = 5, seed: int = 0) -> Tensor:
    return torch.randint(1, 10, (batch, length), generator=torch.Generator().manual_seed(seed))


def test_the_output_has_four_fields_and_is_frozen() -> None:
    out = build(n_classes=3)(tokens())
    assert [field.name for field in fields(out)] == ["hidden", "readout", "logits", "weights"]
    assert isinstance(out, EncoderOutput)
    with pytest.raises(FrozenInstanceError):
        out.hidden = out.hidden  # type: ignore[misc]


@pytest.mark.parametrize("readout", list(registry.readouts))
def test_what_is_not_asked_for_is_none_and_the_rest_has_its_shape(readout: str) -> None:
    tail = (5, 16) if readout == "tokens" else (16,)
    plain = build(readout=readout)(tokens())
    full = build(readout=readout, n_classes=3)(tokens(), need_weights=True)
    assert (plain.logits, plain.weights) == (None, None)
    assert plain.hidden.shape == full.hidden.shape == (2, 5, 16)
    assert plain.readout.shape == full.readout.shape == (2, *tail)
    assert full.logits is not None
    assert full.logits.shape == (2, *tail[:-1], 3)
    assert full.weights is not None
    assert [weights.shape for weights in full.weights] == [(2, 2, 5, 5)] * 2


@pytest.mark.parametrize("position", list(registry.positions))
def test_a_batch_without_sequences_keeps_its_shape(position: str) -> None:
    causal_only = registry.positions[position].causal_only
    encoder = build(position=position, mask="causal" if causal_only else "full", n_layers=1)
    for training in (True, False):
        out = encoder.train(training)(torch.zeros(0, 4, dtype=torch.long))
        assert out.hidden.shape == (0, 4, 16)


def test_logits_are_the_readout_through_one_linear_map() -> None:
    encoder = build(n_classes=3, readout="mean")
    out = encoder(tokens())
    assert encoder.head is not None
    expected = out.readout @ encoder.head.weight.T + encoder.head.bias
    torch.testing.assert_close(out.logits, expected)


@pytest.mark.parametrize("position", list(registry.positions))
@pytest.mark.parametrize("attention", SOFTMAX)
def test_asking_for_weights_changes_nothing_else(position: str, attention: str) -> None:
    encoder = build(position=position, attention=attention, mask="causal", n_classes=3).eval()
    plain, asked = encoder(tokens()), encoder(tokens(), need_weights=True)
    for one, other in ((plain.hidden, asked.hidden), (plain.logits, asked.logits)):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_weights_are_those_before_dropout() -> None:
    encoder = build(dropout={"weights": 0.5}).train()
    state = torch.get_rng_state()
    torch.manual_seed(0)
    trained = encoder(tokens(), need_weights=True).weights
    torch.set_rng_state(state)
    evaluated = encoder.eval()(tokens(), need_weights=True).weights
    assert trained is not None
    assert evaluated is not None
    torch.testing.assert_close(trained[0], evaluated[0])


@pytest.mark.parametrize("place", ["embedding", "weights", "sublayer"])
@pytest.mark.parametrize("attention", list(registry.attentions))
def test_dropout_works_in_training_and_is_off_in_evaluation(place: str, attention: str) -> None:
    encoder = build(dropout={place: 0.5}, attention=attention)
    without = build(attention=attention).eval()(tokens()).hidden
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        trained = [encoder.train()(tokens()).hidden for _ in range(2)]
    evaluated = [encoder.eval()(tokens()).hidden for _ in range(2)]
    assert torch.equal(evaluated[0], evaluated[1])
    assert torch.equal(evaluated[0], without)
    assert not torch.equal(trained[0], trained[1])


def test_the_masks_of_config_and_call_and_the_padding_all_count() -> None:
    encoder, row = build(mask="causal"), torch.tensor([[3, 4, 5, 0]])
    weights = encoder(row, mask=Window(radius=1), need_weights=True).weights
    allowed = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 0]]).bool()
    assert weights is not None
    assert torch.equal(weights[0][0] > 0, allowed.expand(2, 4, 4))


def test_removing_a_mask_changes_the_output() -> None:
    encoder = build(pad_id=None)
    blocked = torch.ones(5, 5).bool()
    blocked[:, 1] = False
    changed = tokens()
    changed[:, 1] = changed[:, 1] % 9 + 1
    others = [0, 2, 3, 4]
    masked = [encoder(x, mask=Dense(blocked)).hidden[:, others] for x in (tokens(), changed)]
    open_to_all = [encoder(x).hidden[:, others] for x in (tokens(), changed)]
    assert torch.equal(masked[0], masked[1])
    assert (open_to_all[0] - open_to_all[1]).abs().max() > 1e-3


def test_pad_tokens_count_as_tokens_where_no_pad_id_is_set() -> None:
    encoder, row = build(pad_id=None), torch.tensor([[3, 4, 0]])
    assert encoder(row).hidden[0, 2].ne(0).any()
    assert build()(row).hidden[0, 2].eq(0).all()


def test_lengths_given_as_a_list_do_what_padding_tokens_do() -> None:
    row, plain = torch.tensor([[3, 4, 5, 0, 0], [1, 2, 3, 4, 5]]), build(pad_id=None)
    by_length = plain(row, mask=Padding(lengths=[3, 5])).hidden
    torch.testing.assert_close(by_length, build()(row).hidden, rtol=1e-6, atol=1e-6)


def test_embedded_inputs_skip_the_table_and_its_scale() -> None:
    encoder = build(position="none")
    assert encoder.embedding is not None
    embedded = encoder.embedding.table(tokens()) * 4  # √16
    torch.testing.assert_close(encoder(embedded).hidden, encoder(tokens()).hidden)
    assert (encoder(embedded / 4).hidden - encoder(tokens()).hidden).abs().max() > 1e-3


@pytest.mark.parametrize(("scale", "norm"), [(False, 1.0), (True, 512**0.5)])
def test_token_vectors_have_the_norm_that_the_scale_gives(scale: bool, norm: float) -> None:
    encoder = build(vocab_size=50, d_model=512, n_layers=1, embedding_scale=scale, pad_id=None)
    assert encoder.embedding is not None
    norms = encoder.embedding(torch.arange(50).unsqueeze(0)).norm(dim=-1)
    assert norms.mean().item() == pytest.approx(norm, rel=0.03)
    position = registry.positions["sinusoidal"](Dims(512, 2, 256, 1))
    rows = position.embed(torch.arange(50).unsqueeze(0)).norm(dim=-1)
    assert rows.flatten().tolist() == pytest.approx([16] * 50)


def test_the_vector_of_the_pad_stays_zero_through_training() -> None:
    encoder = build(n_classes=4)
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=0.1, weight_decay=0.1)
    row = torch.tensor([[0, 0, 3, 4], [5, 6, 0, 0]])
    assert encoder.embedding is not None
    before = encoder.embedding.table.weight.detach().clone()
    for _ in range(5):
        optimizer.zero_grad()
        logits = encoder(row).logits
        assert logits is not None
        logits.square().sum().backward()
        optimizer.step()
    after = encoder.embedding.table.weight
    assert after[0].eq(0).all()
    assert (after[3] - before[3]).abs().max() > 0.1


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("bias", [True, False])
def test_modes_and_gradients_change_no_state(placement: str, bias: bool) -> None:
    encoder = build(norm_placement=placement, bias=bias)
    rows = torch.tensor([[3, 4, 5, 0, 0], [0, 6, 7, 8, 9]])
    found = []
    for training in (True, False):
        for graph in (True, False):
            with torch.set_grad_enabled(graph):
                found.append(encoder.train(training)(rows).hidden)
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=1e-5, atol=1e-5)


def test_a_sinusoidal_table_is_no_larger_than_scaled_token_vectors() -> None:
    """At a width of 512 its rows have norm 16, tokens about 22.6 with the scale and 1 without."""
    sizes = {"vocab_size": 200, "d_model": 512, "n_heads": 8, "n_layers": 1}
    encoder = build_encoder({**sizes, "position": "sinusoidal"}, seed=0)
    position: Any = encoder.positions[0]
    table = position.embed(torch.arange(50).unsqueeze(0))
    torch.testing.assert_close(table.norm(dim=-1).double(), torch.full((1, 50), 16.0).double())
    assert encoder.embedding is not None
    norms = encoder.embedding(torch.arange(200).unsqueeze(0)).norm(dim=-1)
    assert norms.mean().item() == pytest.approx(512**0.5, rel=0.02)


@pytest.mark.parametrize("batch", [3, 4])
def test_each_row_of_a_batch_gets_the_same_table_also_where_they_are_as_many_as_tokens(
    batch: int,
) -> None:
    encoder = build(position="sinusoidal", pad_id=None)
    position: Any = encoder.positions[0]
    given = torch.randint(1, 10, (1, 4), generator=torch.Generator().manual_seed(3))
    hidden = encoder(given.expand(batch, 4)).hidden
    for row in hidden:
        torch.testing.assert_close(row, hidden[0])
    assert position.embed(torch.arange(4).unsqueeze(0)).shape == (1, 4, 16)


def test_positions_can_be_given() -> None:
    encoder = build(position="sinusoidal", pad_id=None)
    given = encoder(tokens(), positions=torch.tensor([[3, 1, 4, 1, 5]])).hidden
    by_rows = encoder(tokens(), positions=torch.tensor([[3, 1, 4, 1, 5]] * 2)).hidden
    assert torch.equal(given, by_rows)
    assert (given - encoder(tokens()).hidden).abs().max() > 1e-3
    counted = encoder(tokens(), positions=torch.arange(5).unsqueeze(0)).hidden
    assert torch.equal(counted, encoder(tokens()).hidden)


def test_given_positions_win_over_those_that_padding_implies() -> None:
    encoder, row = build(position="sinusoidal"), torch.tensor([[0, 0, 3, 4]])
    implied = encoder(row).hidden
    columns = encoder(row, positions=torch.tensor([[0, 1, 2, 3]])).hidden
    same = encoder(row, positions=torch.tensor([[9, 9, 0, 1]])).hidden
    torch.testing.assert_close(same, implied)
    assert (columns - implied).abs().max() > 1e-3


class Anywhere(Position):
    """Positions drawn at random."""

    name = "anywhere"

    def place(self, index: Tensor, generator: torch.Generator | None) -> Tensor:
        return torch.randint(100, index.shape, generator=generator)

    def embed(self, index: Tensor) -> Tensor:
        return (index.unsqueeze(-1) * torch.linspace(0.1, 1, 16)).sin()


def test_random_positions_come_from_the_generator_in_training_and_are_fixed_in_evaluation() -> None:
    encoder = build(position="none")
    encoder.positions[0] = Anywhere(encoder.dims)

    def hidden(training: bool, seed: int | None) -> Tensor:
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        return encoder.train(training)(tokens(), generator=generator).hidden

    assert torch.equal(hidden(True, 1), hidden(True, 1))
    assert not torch.equal(hidden(True, 1), hidden(True, 2))
    assert torch.equal(hidden(False, None), hidden(False, None))
    assert torch.equal(hidden(False, None), hidden(True, 0))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        assert not torch.equal(hidden(True, None), hidden(True, None))


def test_layers_start_independent_of_one_another() -> None:
    encoder = build(n_layers=3)
    layers = [dict(block.named_parameters()) for block in encoder.blocks]
    for path, first in layers[0].items():
        if first.ndim == 2:
            others = [layer[path] for layer in layers[1:]]
            assert not any(torch.equal(first, other) for other in others)
            assert not torch.equal(*others)


def test_one_position_object_is_shared_unless_each_layer_is_given_its_own() -> None:
    shared = build(position="t5_bias")
    separate = build(position="t5_bias", position_per_layer=True)
    assert (len(shared.positions), len(separate.positions)) == (1, 2)
    with torch.no_grad():
        separate.positions[1].get_parameter("table")[1] = 5.0
    first, second = weights_of(separate)
    assert torch.equal(first, weights_of(shared)[0])
    assert (second - weights_of(shared)[1]).abs().max() > 0.1


def weights_of(encoder: Encoder) -> tuple[Tensor, ...]:
    weights = encoder(tokens(), need_weights=True).weights
    assert weights is not None
    return weights


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("given", "error"),
    [
        (torch.zeros(2, 5), ValueError),
        (torch.zeros(2, 5, 8), ValueError),
        (torch.ones(5, dtype=torch.long), ValueError),
        (torch.ones(2, 5).bool(), ValueError),
        (torch.ones(2, 5, dtype=torch.uint8), ValueError),
        ([[1, 2], [3, 4]], TypeError),
        (torch.tensor([[3, 99]]), ValueError),
        (torch.ones(2, 0, dtype=torch.long), ValueError),
    ],
)
def test_tokens_that_do_not_fit_are_refused(
    messages: Messages, given: Any, error: type[Exception]
) -> None:
    with messages.raises(error):
        build()(given)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"mask": torch.ones(5, 5).bool()}, TypeError),
        ({"mask": Dense(torch.ones(3, 1).bool())}, ValueError),
        ({"mask": Padding(lengths=[1])}, ValueError),
        ({"mask": Causal() & Documents(torch.ones(2, 4).long())}, ValueError),
        ({"positions": torch.zeros(1, 5)}, TypeError),
        ({"positions": torch.zeros(3, 5).long()}, ValueError),
        ({"positions": torch.zeros(2, 4).long()}, ValueError),
        ({"positions": torch.zeros(5).long()}, ValueError),
    ],
)
def test_masks_and_positions_that_do_not_fit_are_refused(
    messages: Messages, options: dict[str, Any], error: type[Exception]
) -> None:
    with messages.raises(error):
        build()(tokens(), **options)


def test_an_encoder_without_a_token_table_says_so(messages: Messages) -> None:
    with messages.raises(ValueError):
        build(vocab_size=None, pad_id=None)(tokens())


@pytest.mark.parametrize("size", ["d_model", "n_heads", "d_head", "n_layers"])
def test_a_size_is_at_least_one(messages: Messages, size: str) -> None:
    sizes: dict[str, Any] = {"d_model": 4, "n_heads": 2, "d_head": 2, "n_layers": 1, size: 0}
    with messages.raises(ValueError):
        Dims(**sizes)


def test_a_prefix_keeps_its_loss_on_unpredictable_tokens() -> None:
    encoder = build(vocab_size=16, n_classes=16, mask="causal", pad_id=None, position="rope")
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(0)

    def loss() -> Tensor:
        drawn = torch.randint(16, (32, 12), generator=generator)
        logits = encoder(drawn).logits
        assert logits is not None
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), drawn[:, 1:].flatten())

    for _ in range(60):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    with torch.no_grad():
        fresh = sum(loss().item() for _ in range(10)) / 10
    assert fresh > 2.7726 - 0.05  # log 16
