"""Whole layers do what those of Hugging Face and x-transformers do, forward and backward.

All of them have random weights of their own, which ours take over.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from registry import build_encoder
from variants import Dims, Encoder
from variants.feedforwards import GEGLU, ReGLU, SquaredReLU, SwiGLU
from variants.masks import Mask, Padding
from variants.norms import LayerNorm, RMSNorm

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other libraries about torch

D_MODEL, HEADS, D_FF, LAYERS, SEQ = 16, 2, 32, 2, 7
DIMS = Dims(D_MODEL, HEADS, D_MODEL // HEADS, LAYERS)
PADDED = Padding(lengths=[7, 4, 1])

Pick = Callable[[Tensor], Tensor]
Pairs = Mapping[str, tuple[nn.Parameter, Pick]]
"""Our parameters by path, each with theirs and what of it is ours."""


def inputs() -> Tensor:
    return torch.randn(3, SEQ, D_MODEL, generator=torch.Generator().manual_seed(1))


def randomized(theirs: Any) -> Any:
    """Weights that are neither 0 nor 1 where they start so."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for path, parameter in theirs.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator) / 6
            is_gain = parameter.ndim == 1 and "bias" not in path
            parameter.copy_(noise + 1 if is_gain else noise)
    return theirs.eval()


def whole(weight: Tensor) -> Tensor:
    return weight


def turned(weight: Tensor) -> Tensor:
    return weight.T


def linear(path: str, theirs: Any) -> dict[str, tuple[nn.Parameter, Pick]]:
    """The weight of a linear map or a norm, and its bias where it has one."""
    found = {f"{path}.weight": (theirs.weight, whole)}
    bias = getattr(theirs, "bias", None)
    return found if bias is None else {**found, f"{path}.bias": (bias, whole)}


def take_over(ours: nn.Module, pairs: Pairs) -> None:
    parameters = dict(ours.named_parameters())
    assert set(parameters) == set(pairs)
    with torch.no_grad():
        for path, (theirs, pick) in pairs.items():
            parameters[path].copy_(pick(theirs))


def assert_same(ours: nn.Module, pairs: Pairs, run: Any, theirs: Any, real: Any = ...) -> None:
    """Outputs, and gradients of inputs and of all parameters, equal to 1e-5."""
    take_over(ours, pairs)
    x, y = inputs().requires_grad_(), inputs().requires_grad_()
    out, expected = run(x), theirs(y)
    torch.testing.assert_close(out[real], expected[real], rtol=1e-5, atol=1e-5)
    weight = torch.randn(expected.shape, generator=torch.Generator().manual_seed(2)) / out.numel()
    for result in (out, expected):
        (10 * result * weight)[real].sum().backward()
    torch.testing.assert_close(x.grad, y.grad, rtol=1e-5, atol=1e-5)
    for path, parameter in ours.named_parameters():
        other, pick = pairs[path]
        assert parameter.grad is not None, path
        assert other.grad is not None, path
        torch.testing.assert_close(parameter.grad, pick(other.grad), rtol=1e-5, atol=1e-5, msg=path)


def encoder(**changes: Any) -> Encoder:
    sizes = {"d_model": D_MODEL, "n_heads": HEADS, "n_layers": LAYERS}
    return build_encoder({**sizes, "position": "none", **changes}, seed=0)


def hidden(ours: Encoder, mask: Mask | None = None) -> Any:
    return lambda x: ours(x, mask=mask).hidden


def first(result: Any) -> Tensor:
    return result[0] if isinstance(result, tuple) else result


def bert_layers(layers: Any) -> Pairs:
    """The parameters of a stack of BERT's layers, or RoFormer's, which has the same names."""
    pairs: dict[str, tuple[nn.Parameter, Pick]] = {}
    for number, layer in enumerate(layers):
        attention, path = layer.attention, f"blocks.{number}"
        for ours, theirs in (
            ("attention.to_q", attention.self.query),
            ("attention.to_k", attention.self.key),
            ("attention.to_v", attention.self.value),
            ("attention.to_model", attention.output.dense),
            ("joins.0.after", attention.output.LayerNorm),
            ("feedforward.to_hidden", layer.intermediate.dense),
            ("feedforward.to_model", layer.output.dense),
            ("joins.1.after", layer.output.LayerNorm),
        ):
            pairs |= linear(f"{path}.{ours}", theirs)
    return pairs


SIZES: dict[str, Any] = {
    "hidden_size": D_MODEL, "num_attention_heads": HEADS, "num_hidden_layers": LAYERS,
    "intermediate_size": D_FF, "vocab_size": 5, "max_position_embeddings": SEQ,
}  # fmt: skip
POST: dict[str, Any] = {
    "norm_placement": "post", "feedforward": {"name": "gelu", "d_ff": D_FF},
    "norm": {"name": "layernorm", "eps": 1e-12},
}  # fmt: skip


@pytest.mark.parametrize("attention", ["sdpa", "explicit", "chunked"])
@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_layers_are_those_of_bert(attention: str, padded: bool, implementation: str) -> None:
    from transformers import BertConfig, BertModel

    options: dict[str, Any] = {**SIZES, "attn_implementation": implementation}
    config = BertConfig(**options)
    layers = randomized(BertModel(config, add_pooling_layer=False)).encoder.layer
    given = PADDED.to_additive(torch.float32, 3, HEADS, SEQ, SEQ) if padded else None
    if padded and implementation == "sdpa":
        given = PADDED.dense(3, HEADS, SEQ, SEQ)

    def theirs(x: Tensor) -> Tensor:
        for layer in layers:
            x = first(layer(x, attention_mask=given))
        return x

    ours = encoder(**POST, attention=attention)
    real = PADDED.keep(3, SEQ) if padded else ...
    run = hidden(ours, PADDED if padded else None)
    assert_same(ours, bert_layers(layers), run, theirs, real)


@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
def test_layers_with_rotary_positions_are_those_of_roformer(padded: bool) -> None:
    from transformers import RoFormerConfig, RoFormerModel

    model = randomized(RoFormerModel(RoFormerConfig(**SIZES)))
    table = model.encoder.embed_positions
    table.weight = nn.Parameter(table.create_weight(), requires_grad=False)
    waves = table(torch.Size([1, SEQ]))[None, None]
    given = PADDED.to_additive(torch.float32, 3, HEADS, SEQ, SEQ) if padded else None

    def theirs(x: Tensor) -> Tensor:
        for layer in model.encoder.layer:
            x = first(layer(x, attention_mask=given, sinusoidal_pos=waves))
        return x

    ours = encoder(**POST, position={"name": "rope", "pairing": "neighbours"})
    real = PADDED.keep(3, SEQ) if padded else ...
    run = hidden(ours, PADDED if padded else None)
    assert_same(ours, bert_layers(model.encoder.layer), run, theirs, real)


def test_a_causal_encoder_of_the_gpt_style_is_gpt2() -> None:
    from transformers import GPT2Config, GPT2Model

    config = GPT2Config(
        n_embd=D_MODEL, n_head=HEADS, n_layer=LAYERS, n_inner=D_FF, n_positions=SEQ, vocab_size=5
    )
    model = randomized(GPT2Model(config))
    pairs: dict[str, tuple[nn.Parameter, Pick]] = {
        "positions.0.table.weight": (model.wpe.weight, whole)
    }
    pairs |= linear("final_norm", model.ln_f)
    for number, layer in enumerate(model.h):
        path = f"blocks.{number}"
        pairs |= linear(f"{path}.joins.0.before", layer.ln_1)
        pairs |= linear(f"{path}.joins.1.before", layer.ln_2)
        for at, name in enumerate(("to_q", "to_k", "to_v")):
            third = slice(at * D_MODEL, (at + 1) * D_MODEL)
            own = layer.attn.c_attn
            pairs[f"{path}.attention.{name}.weight"] = (own.weight, lambda w, s=third: w[:, s].T)
            pairs[f"{path}.attention.{name}.bias"] = (own.bias, lambda b, s=third: b[s])
        for ours, theirs in (
            ("attention.to_model", layer.attn.c_proj),
            ("feedforward.to_hidden", layer.mlp.c_fc),
            ("feedforward.to_model", layer.mlp.c_proj),
        ):
            pairs[f"{path}.{ours}.weight"] = (theirs.weight, turned)
            pairs[f"{path}.{ours}.bias"] = (theirs.bias, whole)
    ours = build_encoder(
        "gpt_style", vocab_size=None, d_model=D_MODEL, n_heads=HEADS, n_layers=LAYERS,
        position={"name": "learned", "max_length": SEQ},
        feedforward={"name": "gelu_tanh", "d_ff": D_FF}, seed=0,
    ).eval()  # fmt: skip
    run = hidden(ours)
    assert_same(ours, pairs, run, lambda x: model(inputs_embeds=x).last_hidden_state)


@pytest.mark.parametrize("n_kv_heads", [2, 1])
def test_a_causal_encoder_of_the_modern_style_is_llama(n_kv_heads: int) -> None:
    from transformers import LlamaConfig, LlamaModel

    model = randomized(LlamaModel(LlamaConfig(**SIZES, num_key_value_heads=n_kv_heads)))
    pairs: dict[str, tuple[nn.Parameter, Pick]] = {"final_norm.weight": (model.norm.weight, whole)}
    for number, layer in enumerate(model.layers):
        for ours, theirs in (
            ("joins.0.before", layer.input_layernorm),
            ("attention.to_q", layer.self_attn.q_proj),
            ("attention.to_k", layer.self_attn.k_proj),
            ("attention.to_v", layer.self_attn.v_proj),
            ("attention.to_model", layer.self_attn.o_proj),
            ("joins.1.before", layer.post_attention_layernorm),
            ("feedforward.to_gate", layer.mlp.gate_proj),
            ("feedforward.to_hidden", layer.mlp.up_proj),
            ("feedforward.to_model", layer.mlp.down_proj),
        ):
            pairs |= linear(f"blocks.{number}.{ours}", theirs)
    ours = build_encoder(
        "modern", vocab_size=None, d_model=D_MODEL, n_heads=HEADS, n_layers=LAYERS, mask="causal",
        feedforward={"name": "swiglu", "d_ff": D_FF},
        attention={"name": "sdpa", "n_kv_heads": n_kv_heads}, seed=0,
    )  # fmt: skip
    run = hidden(ours)
    assert_same(ours, pairs, run, lambda x: model(inputs_embeds=x).last_hidden_state)


def test_an_encoder_with_bucketed_biases_and_unscaled_scores_is_t5() -> None:
    from transformers import T5Config, T5EncoderModel

    config = T5Config(
        d_model=D_MODEL, d_kv=D_MODEL // HEADS, d_ff=D_FF, num_layers=LAYERS, num_heads=HEADS,
        vocab_size=5, dropout_rate=0.0,
    )  # fmt: skip
    model = randomized(T5EncoderModel(config)).encoder
    table = model.block[0].layer[0].SelfAttention.relative_attention_bias.weight
    pairs: dict[str, tuple[nn.Parameter, Pick]] = {"positions.0.table": (table, whole)}
    pairs |= linear("final_norm", model.final_layer_norm)
    for number, block in enumerate(model.block):
        own, after = block.layer[0].SelfAttention, block.layer[1].DenseReluDense
        for ours, theirs in (
            ("joins.0.before", block.layer[0].layer_norm),
            ("attention.to_q", own.q),
            ("attention.to_k", own.k),
            ("attention.to_v", own.v),
            ("attention.to_model", own.o),
            ("joins.1.before", block.layer[1].layer_norm),
            ("feedforward.to_hidden", after.wi),
            ("feedforward.to_model", after.wo),
        ):
            pairs |= linear(f"blocks.{number}.{ours}", theirs)
    ours = encoder(
        position="t5_bias", norm={"name": "rmsnorm", "eps": 1e-6}, norm_placement="pre",
        feedforward={"name": "relu", "d_ff": D_FF}, attention={"name": "sdpa", "scale": "none"},
        bias=False,
    )  # fmt: skip
    run = hidden(ours)
    assert_same(ours, pairs, run, lambda x: model(inputs_embeds=x).last_hidden_state)


def test_layernorm_is_that_of_torch() -> None:
    theirs = randomized(nn.LayerNorm(D_MODEL))
    ours = LayerNorm(DIMS)
    pairs = {"weight": (theirs.weight, whole), "bias": (theirs.bias, whole)}
    assert_same(ours, pairs, ours, theirs)


def test_rmsnorm_is_that_of_torch_and_of_x_transformers() -> None:
    from x_transformers.x_transformers import RMSNorm as Theirs

    torchs, other = randomized(nn.RMSNorm(D_MODEL, eps=1e-5)), randomized(Theirs(D_MODEL))
    ours = RMSNorm(DIMS, eps=1e-5)
    assert_same(ours, {"weight": (torchs.weight, whole)}, ours, torchs)
    ours = RMSNorm(DIMS, eps=1e-12)
    assert_same(ours, {"weight": (other.g, whole)}, ours, other)


@pytest.mark.parametrize(
    ("part", "activation"),
    [(SwiGLU, nn.SiLU()), (GEGLU, nn.GELU()), (ReGLU, nn.ReLU())],
    ids=["swiglu", "geglu", "reglu"],
)
def test_gated_layers_are_those_of_x_transformers(part: Any, activation: nn.Module) -> None:
    from x_transformers.x_transformers import FeedForward as Theirs

    theirs = randomized(Theirs(D_MODEL, mult=2, glu=True, custom_activation=activation))
    proj, out = (one for one in theirs.modules() if isinstance(one, nn.Linear))
    ours = part(DIMS, d_ff=D_FF)
    pairs = {
        "to_hidden.weight": (proj.weight, lambda w: w[:D_FF]),
        "to_hidden.bias": (proj.bias, lambda b: b[:D_FF]),
        "to_gate.weight": (proj.weight, lambda w: w[D_FF:]),
        "to_gate.bias": (proj.bias, lambda b: b[D_FF:]),
        **linear("to_model", out),
    }
    assert_same(ours, pairs, ours, theirs)


def test_squared_relu_is_that_of_x_transformers() -> None:
    from x_transformers.x_transformers import FeedForward as Theirs

    theirs = randomized(Theirs(D_MODEL, mult=2, relu_squared=True))
    maps = [one for one in theirs.modules() if isinstance(one, nn.Linear)]
    ours = SquaredReLU(DIMS, d_ff=D_FF)
    pairs = {**linear("to_hidden", maps[0]), **linear("to_model", maps[1])}
    assert_same(ours, pairs, ours, theirs)
