"""Position encodings do what other libraries' implementations do, forward and backward."""

from typing import Any

import pytest
import torch
from einops import rearrange
from torch import Tensor

from variants import Dims
from variants.positions import ALiBi, CoPE, RoPE, Shaw, Sinusoidal, T5Bias, TransformerXL, XPos

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other libraries about torch

SEQ = 11
INDEX = torch.arange(SEQ).unsqueeze(0)


def dims(n_heads: int = 2, d_head: int = 8) -> Dims:
    return Dims(n_heads * d_head, n_heads, d_head, 1)


def heads(n_heads: int = 2, d_head: int = 8, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(3, n_heads, SEQ, d_head, generator=generator, requires_grad=True)


def assert_same(ours: Tensor, theirs: Tensor, *inputs: Tensor) -> None:
    """Equal to 1e-5, and so are the gradients of a loss that weighs each number by itself."""
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    weight = torch.randn(ours.shape, generator=torch.Generator().manual_seed(9))
    grads = [torch.autograd.grad((out * weight).sum(), inputs) for out in (ours, theirs)]
    torch.testing.assert_close(*grads, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("fraction", [1.0, 0.5])
@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_rope_by_neighbours_is_that_of_x_transformers(fraction: float, factor: float) -> None:
    from x_transformers import x_transformers as theirs

    q = heads()
    rotary = theirs.RotaryEmbedding(int(8 * fraction), interpolation_factor=factor)
    frequencies, _ = rotary.forward_from_seq_len(SEQ)
    scaling: dict[str, Any] = {"scaling": "linear", "factor": factor} if factor > 1 else {}
    ours, _ = RoPE(dims(), fraction=fraction, **scaling).rotate(q, q, INDEX, INDEX)
    assert_same(ours, theirs.apply_rotary_pos_emb(q, frequencies), q)


def test_ntk_rope_is_that_of_x_transformers() -> None:
    from x_transformers import x_transformers as theirs

    q = heads()
    frequencies, _ = theirs.RotaryEmbedding(8, base_rescale_factor=4).forward_from_seq_len(SEQ)
    ours, _ = RoPE(dims(), scaling="ntk", factor=4.0).rotate(q, q, INDEX, INDEX)
    assert_same(ours, theirs.apply_rotary_pos_emb(q, frequencies), q)


def test_rope_by_neighbours_is_that_of_roformer() -> None:
    from transformers.models.roformer import modeling_roformer as theirs

    q, k = heads(), heads(seed=1)
    table = theirs.RoFormerSinusoidalPositionalEmbedding(SEQ, 8)
    table.weight = torch.nn.Parameter(table.create_weight(), requires_grad=False)
    waves = rearrange(table(torch.Size([1, SEQ])), "seq width -> 1 1 seq width")
    turn = theirs.RoFormerSelfAttention.apply_rotary_position_embeddings
    expected = turn(waves, q, k)
    ours = RoPE(dims()).rotate(q, k, INDEX, INDEX)
    assert_same(torch.cat(ours), torch.cat(expected), q, k)


SCALINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "linear": {"scaling": "linear", "factor": 4.0},
    "dynamic": {"scaling": "ntk", "factor": 4.0},
    "yarn": {"scaling": "yarn", "factor": 4.0, "trained_length": 64},
}


@pytest.mark.parametrize("kind", SCALINGS)
@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_rope_by_halves_and_its_scalings_are_those_of_hugging_face(
    kind: str, fraction: float
) -> None:
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
    from transformers.models.phi.modeling_phi import apply_rotary_pos_emb

    d_head, width = 32, int(32 * fraction)
    parameters = {"rope_type": kind, "rope_theta": 10_000.0, "partial_rotary_factor": fraction}
    if kind != "default":
        # Their dynamic rule stretches by the length itself; at four times 64 that is a factor of 4.
        parameters["factor"] = 1.0 if kind == "dynamic" else 4.0
        parameters["original_max_position_embeddings"] = 64
    config = LlamaConfig(
        hidden_size=2 * d_head,
        num_attention_heads=2,
        max_position_embeddings=64 if kind == "dynamic" else 256,
        rope_parameters=parameters,
    )
    if kind == "default":
        frequency, temperature = 10_000.0 ** (-torch.arange(0, width, 2) / width), 1.0
    else:
        rule = ROPE_INIT_FUNCTIONS[kind]
        frequency, temperature = rule(config, torch.device("cpu"), seq_len=256)
    angle = rearrange(INDEX[0].float(), "seq -> 1 seq 1") * torch.cat([frequency, frequency])
    cos, sin = temperature * angle.cos(), temperature * angle.sin()
    q, k = heads(2, d_head), heads(2, d_head, seed=1)
    turned = apply_rotary_pos_emb(q[..., :width], k[..., :width], cos, sin)
    expected = [
        torch.cat([one, x[..., width:]], dim=-1) for one, x in zip(turned, (q, k), strict=True)
    ]
    part = RoPE(dims(2, d_head), pairing="halves", fraction=fraction, **SCALINGS[kind])
    assert_same(torch.cat(part.rotate(q, k, INDEX, INDEX)), torch.cat(expected), q, k)


@pytest.mark.parametrize("n_heads", [1, 2, 3, 6, 8, 12])
def test_alibi_is_that_of_x_transformers(n_heads: int) -> None:
    from x_transformers.x_transformers import AlibiPositionalBias

    ours = ALiBi(dims(n_heads)).bias(INDEX, INDEX)[0]
    torch.testing.assert_close(ours, AlibiPositionalBias(n_heads)(SEQ, SEQ))


@pytest.mark.parametrize("n_heads", [1, 2, 3, 6, 8, 12])
def test_alibi_is_that_of_bloom_up_to_a_constant_a_row(n_heads: int) -> None:
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    theirs = build_alibi_tensor(torch.ones(1, SEQ), n_heads, torch.float32)
    ours = ALiBi(dims(n_heads), sides="causal").bias(INDEX, INDEX)[0]
    difference = ours - theirs
    torch.testing.assert_close(difference, difference[..., :1].expand_as(difference))


@pytest.mark.parametrize("n_heads", [1, 2, 4, 8])
def test_alibi_is_that_of_mpt_where_heads_are_a_power_of_two(n_heads: int) -> None:
    """For other numbers MPT has the same kind of rule and other slopes."""
    from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor

    ours = ALiBi(dims(n_heads), sides="causal").bias(INDEX[:, -1:], INDEX)[0]
    torch.testing.assert_close(ours, build_mpt_alibi_tensor(n_heads, SEQ))


@pytest.mark.parametrize("bidirectional", [True, False])
def test_the_t5_bias_is_that_of_t5_and_of_x_transformers(bidirectional: bool) -> None:
    from transformers.models.t5.modeling_t5 import T5Attention
    from x_transformers.x_transformers import RelativePositionBias

    index = torch.arange(300).unsqueeze(0)
    ours = T5Bias(dims(3), bidirectional=bidirectional)
    theirs = RelativePositionBias(1.0, not bidirectional, heads=3)
    theirs.relative_attention_bias.weight = ours.table
    with torch.no_grad():
        ours.table.normal_(generator=torch.Generator().manual_seed(0))
    assert_same(ours.bias(index, index)[0], theirs(300, 300), ours.table)
    relative = index - index.T
    buckets = T5Attention._relative_position_bucket(relative, bidirectional)
    assert torch.equal(ours.bucket(relative), buckets)


def test_concatenated_sinusoids_are_those_of_roformer() -> None:
    from transformers.models.roformer.modeling_roformer import (
        RoFormerSinusoidalPositionalEmbedding,
    )

    theirs = RoFormerSinusoidalPositionalEmbedding(SEQ, 16).create_weight()
    ours = Sinusoidal(dims(2, 8), layout="concatenated").embed(INDEX)[0]
    torch.testing.assert_close(ours.float(), theirs)


def test_transformer_xl_is_xlnets_attention() -> None:
    """Its weights, as those of a softmax over q·k/√d_head plus our scores."""
    from transformers import XLNetConfig
    from transformers.models.xlnet import modeling_xlnet as theirs

    config = XLNetConfig(vocab_size=4, d_model=16, n_layer=1, n_head=2, d_inner=4, dropout=0.0)
    model = theirs.XLNetModel(config)
    layer: Any = model.layer[0].rel_attn
    torch.manual_seed(0)
    for weight in (layer.r, layer.r_w_bias, layer.r_r_bias):
        torch.nn.init.normal_(weight)
    part = TransformerXL(dims())
    with torch.no_grad():
        part.u.copy_(layer.r_w_bias)
        part.v.copy_(layer.r_r_bias)
        part.to_heads.weight.copy_(rearrange(layer.r, "width heads d_head -> (heads d_head) width"))
    q, k = heads(), heads(seed=1)
    waves = model.relative_positional_encoding(SEQ, SEQ, bsz=3)
    relative = torch.einsum("ibh,hnd->ibnd", waves, layer.r)
    q_first, k_first = (rearrange(x, "batch heads seq d -> seq batch heads d") for x in (q, k))
    _, shown = layer.rel_attn_core(q_first, k_first, k_first, relative, output_attentions=True)
    plain = q @ k.mT / 8**0.5
    weights = (plain + part.scores(q, k, INDEX, INDEX)).softmax(-1)
    expected = rearrange(shown, "query key batch heads -> batch heads query key")
    assert_same(weights, expected, q, k)


@pytest.mark.parametrize("max_distance", [3, 20])
def test_shaws_scores_are_those_of_wav2vec2_bert(max_distance: int) -> None:
    from types import SimpleNamespace

    from transformers.models.wav2vec2_bert import modeling_wav2vec2_bert as theirs

    part, q, k = Shaw(dims(), max_distance), heads(), heads(seed=1)
    module = SimpleNamespace(
        left_max_position_embeddings=max_distance,
        right_max_position_embeddings=max_distance,
        distance_embedding=part.table,
        scaling=8**-0.5,
    )
    _, expected = theirs._apply_relative_key_position_encoding(module, q, k)
    assert_same(part.scores(q, k, INDEX, INDEX), expected, q, part.table.weight)


def test_xpos_is_that_of_x_transformers() -> None:
    """Scores of q with k: they measure powers from another middle, which cancels."""
    from x_transformers import x_transformers as theirs

    q, k = heads(), heads(seed=1)
    scale: Any
    frequencies, scale = theirs.RotaryEmbedding(8, use_xpos=True).forward_from_seq_len(SEQ)
    expected = [
        theirs.apply_rotary_pos_emb(x, frequencies, one)
        for x, one in ((q, scale), (k, scale**-1.0))
    ]
    turned = XPos(dims()).rotate(q, k, INDEX, INDEX)
    assert_same(turned[0] @ turned[1].mT, expected[0] @ expected[1].mT, q, k)


@pytest.mark.parametrize("max_position", [4, 16])
def test_cope_is_that_of_x_transformers_under_a_causal_mask(max_position: int) -> None:
    from x_transformers.x_transformers import CoPE as Theirs

    part, q, k = CoPE(dims(), max_position), heads(), heads(seed=1)
    theirs = Theirs(8, 2, max_position)
    theirs.pos_emb = part.table
    with torch.no_grad():
        part.table.normal_(generator=torch.Generator().manual_seed(0))
    future = torch.ones(SEQ, SEQ).triu(1).bool()
    expected = theirs(q, (q @ k.mT / 8**0.5).masked_fill(future, -torch.inf))
    ours = part.scores(q, k, INDEX, INDEX)
    assert_same(*(x.masked_fill(future, 0.0) for x in (ours, expected)), q, k, part.table)
