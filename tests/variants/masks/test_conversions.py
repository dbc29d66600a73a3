"""Conversions: what other libraries hold, there and back, and what is refused on the way."""

from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.messages import Messages
from variants.masks import Blocks, Causal, Dense, Documents, Full, Mask, Padding, Prefix, Window

BATCH, HEADS, N = 2, 3, 5
SIZES = (BATCH, HEADS, N, N)
LEFT = Padding(keep=torch.tensor([[False, False, True, True, True], [True] * 5]))
CELLS = torch.rand(*SIZES, generator=torch.Generator().manual_seed(0)) < 0.5
ATOMS: list[Mask] = [
    *(Full(), Causal(), Window(radius=1), Prefix(2), Blocks(2), LEFT, Padding(lengths=[3, 5])),
    *(Documents(torch.tensor([[0, 0, 0, 1, 1]])), Dense(CELLS), Dense(CELLS[:1])),
    Dense(CELLS[:, 0]),
]
masks = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a, b: a | b, inner, inner),
        st.builds(lambda a: ~a, inner),
    ),
    max_leaves=4,
)
# What the laws call thousands of times has its shapes checked by the other tests.
laws = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def law(test: Any) -> Any:
    return pytest.mark.usefixtures("unchecked")(laws(test))


def cells(mask: Mask) -> Tensor:
    return mask.dense(*SIZES).expand(SIZES)


@law
@given(masks)
def test_an_ignore_mask_comes_back_as_the_mask_that_it_was(mask: Mask) -> None:
    ignore = mask.to_ignore(*SIZES)
    assert ignore.shape in ((N, N), (BATCH * HEADS, N, N))
    assert torch.equal(cells(Mask.from_ignore(ignore, heads=HEADS)), cells(mask))


@law
@given(masks)
def test_a_keep_mask_comes_back_as_the_mask_that_it_was(mask: Mask) -> None:
    keep = mask.to_keep(*SIZES)
    assert keep.shape in ((BATCH, N), (BATCH, 1, N, N), (BATCH, HEADS, N, N))
    assert torch.equal(cells(Mask.from_keep(keep)), cells(mask))
    assert torch.equal(cells(Mask.from_keep(keep.int())), cells(mask))


@law
@given(masks, st.sampled_from([torch.float16, torch.bfloat16, torch.float32, torch.float64]))
def test_an_additive_mask_comes_back_as_the_mask_that_it_was(
    mask: Mask, dtype: torch.dtype
) -> None:
    added = mask.to_additive(dtype, *SIZES)
    assert added.dtype == dtype
    assert torch.equal(cells(Mask.from_additive(added)), cells(mask))
    least = added.clamp(min=torch.finfo(dtype).min)
    assert torch.equal(cells(Mask.from_additive(least)), cells(mask))


@law
@given(masks, st.integers(1, 3), st.integers(1, 3))
def test_tensors_come_back_as_the_tensors_that_they_were(mask: Mask, batch: int, n: int) -> None:
    allowed = cells(mask)[:, :, :n]
    back = Mask.from_ignore(~allowed.flatten(0, 1), heads=HEADS)
    assert torch.equal(back.to_ignore(BATCH, HEADS, n, N), ~allowed.flatten(0, 1))
    if n > 1:
        keep = Mask.from_keep(allowed).to_keep(BATCH, HEADS, n, N)
        assert torch.equal(keep, allowed)


@pytest.mark.parametrize("mask", [LEFT, Padding(lengths=[3, 5]), Padding(lengths=[2, 4]) & LEFT])
def test_padding_stays_padding(mask: Mask) -> None:
    keep = mask.keep(BATCH, N)
    assert keep is not None
    twin = Padding(keep=keep)
    assert Mask.from_ignore_padding(~keep) == twin
    assert torch.equal(mask.to_ignore_padding(BATCH, N), ~keep)
    assert mask.to_keep(*SIZES).dtype == torch.int64
    assert torch.equal(mask.to_keep(*SIZES), keep.long())
    assert Mask.from_keep(mask.to_keep(*SIZES)) == twin
    assert mask.to_additive(torch.float32, *SIZES).shape == (BATCH, 1, 1, N)
    assert Mask.from_additive(mask.to_additive(torch.float32, *SIZES)) == twin


@pytest.mark.parametrize("mask", [Prefix(2), LEFT & Prefix(3), ~LEFT, LEFT | Prefix(1), Full()])
def test_what_only_looks_like_padding_does_not_become_padding(
    messages: Messages, mask: Mask
) -> None:
    assert mask.to_keep(*SIZES).ndim == 4
    with messages.raises(ValueError):
        mask.to_ignore_padding(BATCH, N)
    assert Mask.from_keep(mask.to_keep(*SIZES)).keep(BATCH, N) is None
    assert Mask.from_additive(mask.to_additive(torch.float32, *SIZES)).keep(BATCH, N) is None


def test_one_query_that_all_rows_share_comes_back() -> None:
    sizes = (BATCH, HEADS, 1, N)
    for mask in (Causal("last"), ~Causal("first"), Prefix(2)):
        for back in (
            Mask.from_ignore(mask.to_ignore(*sizes)),
            Mask.from_keep(mask.to_keep(*sizes)),
            Mask.from_additive(mask.to_additive(torch.float32, *sizes)),
        ):
            assert torch.equal(
                back.dense(*sizes).expand(sizes), mask.dense(*sizes).expand(sizes)
            ), mask


def test_an_ignore_mask_is_as_small_as_torch_allows() -> None:
    assert Causal().to_ignore(*SIZES).shape == (N, N)
    assert Full().to_ignore(*SIZES).shape == (N, N)
    assert Padding(lengths=[1, 2]).to_ignore(*SIZES).shape == (BATCH * HEADS, N, N)
    assert Dense(CELLS[:1]).to_ignore(*SIZES).shape == (BATCH * HEADS, N, N)


def test_the_heads_of_a_batch_row_stand_side_by_side() -> None:
    ignore = Dense(CELLS).to_ignore(*SIZES)
    for batch in range(BATCH):
        for head in range(HEADS):
            assert torch.equal(ignore[batch * HEADS + head], ~CELLS[batch, head])


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_as_many_batch_rows_as_heads_are_no_special_case(heads: int) -> None:
    allowed = torch.rand(2, heads, 3, 3, generator=torch.Generator().manual_seed(1)) < 0.5
    back = Mask.from_ignore(~allowed.flatten(0, 1), heads=heads)
    assert torch.equal(back.dense(2, heads, 3, 3), allowed)
    rows = Mask.from_keep(allowed[:, :1])
    assert torch.equal(rows.dense(2, heads, 3, 3), allowed[:, :1])


def test_what_torch_reads_is_what_was_meant() -> None:
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(6, HEADS, batch_first=True)
    x = torch.randn(BATCH, N, 6)
    mask = Dense(CELLS | torch.eye(N).bool())
    _, weights = attention(*(x, x, x), attn_mask=mask.to_ignore(*SIZES), average_attn_weights=False)
    assert torch.equal(weights > 0, cells(mask))


def test_a_mask_that_is_added_twice_forbids_the_same() -> None:
    added = LEFT.to_additive(torch.float16, *SIZES) + Causal().to_additive(torch.float16, *SIZES)
    assert not added.isnan().any()
    assert torch.equal(cells(Mask.from_additive(added)), cells(LEFT & Causal()))


BOOL, FLOAT = torch.ones(N, N) > 0, torch.ones(N, N)
REFUSED: list[tuple[Callable[[], object], type[Exception]]] = [
    (lambda: Mask.from_ignore(FLOAT), TypeError),
    (lambda: Mask.from_ignore(FLOAT.long()), TypeError),
    (lambda: Mask.from_ignore(CELLS), ValueError),
    (lambda: Mask.from_ignore(CELLS[0]), ValueError),
    (lambda: Mask.from_ignore(CELLS[0], heads=2), ValueError),
    (lambda: Mask.from_ignore(CELLS[0], heads=0), ValueError),
    (lambda: Mask.from_ignore_padding(FLOAT), TypeError),
    (lambda: Mask.from_ignore_padding(CELLS[0]), ValueError),
    (lambda: Mask.from_keep(FLOAT), TypeError),
    (lambda: Mask.from_keep(2 * BOOL.long()), ValueError),
    (lambda: Mask.from_keep(-BOOL.long()), ValueError),
    (lambda: Mask.from_keep(CELLS[0]), ValueError),
    (lambda: Mask.from_keep(BOOL[0]), ValueError),
    (lambda: Mask.from_additive(BOOL), TypeError),
    (lambda: Mask.from_additive(FLOAT), ValueError),
    (lambda: Mask.from_additive(FLOAT * -1e4), ValueError),
    (lambda: Mask.from_additive(-1e9 * BOOL.triu().double()), ValueError),
    (lambda: Mask.from_additive(BOOL.triu().float()), ValueError),
    (lambda: Mask.from_ignore(CELLS[0], heads=3.0), ValueError),  # type: ignore[arg-type]
    (lambda: Mask.from_additive(FLOAT * torch.nan), ValueError),
    (lambda: Mask.from_additive(FLOAT * torch.inf), ValueError),
    (lambda: Mask.from_additive(0 * CELLS[0].float()), ValueError),
    (lambda: Causal().to_additive(torch.bool, *SIZES), TypeError),
    (lambda: Causal().to_additive(torch.int64, *SIZES), TypeError),
]


FROM = (Mask.from_ignore, Mask.from_ignore_padding, Mask.from_keep, Mask.from_additive, Dense)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("convert", FROM, ids=lambda convert: convert.__name__)
@pytest.mark.parametrize("given", [[[True, False]], numpy.ones((2, 2), bool), None], ids=type)
def test_what_is_no_tensor_is_refused(
    messages: Messages, convert: Callable[..., object], given: object
) -> None:
    with messages.raises(TypeError):
        convert(given)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("gradients", [True, False], ids=["gradients", "inference"])
@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
def test_padding_for_torch_is_the_padding_that_it_reads(training: bool, gradients: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).train(training)
    x, mask = torch.randn(2, 5, 8), Padding(lengths=[3, 5])
    with torch.set_grad_enabled(gradients):
        padded = encoder(x, src_key_padding_mask=mask.to_ignore_padding(2, 5))
        full = encoder(x, mask=mask.to_ignore(2, 2, 5, 5))
    assert padded.shape == full.shape
    keep = mask.keep(2, 5)
    torch.testing.assert_close(padded[keep], full[keep])


def test_what_is_converted_is_on_the_device_that_was_asked_for() -> None:
    for converted in (
        LEFT.to_ignore(*SIZES, device="meta"),
        Causal().to_keep(*SIZES, device="meta"),
        Causal().to_additive(torch.float32, *SIZES, device="meta"),
    ):
        assert converted.device.type == "meta"


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_does_not_fit_is_refused_by_its_dtype_or_shape(
    messages: Messages, number: int
) -> None:
    convert, error = REFUSED[number]
    with messages.raises(error):
        convert()


def test_a_padding_tensor_given_as_a_mask_of_queries_is_told_apart_when_it_is_used(
    messages: Messages,
) -> None:
    mask = Mask.from_ignore(torch.zeros(2, 5) > 0)
    with messages.raises(ValueError):
        mask.dense(2, 1, 5, 5)


@pytest.mark.parametrize(
    "part", [slice(1, 3), slice(None), slice(4, 9), slice(0, 0), slice(-2, None)]
)
@pytest.mark.parametrize("mask", [*ATOMS, LEFT & Blocks(2), Causal() | LEFT], ids=repr)
def test_a_chunk_is_a_slice_of_the_rows(mask: Mask, part: slice) -> None:
    rows = cells(mask)[:, :, part]
    chunk = mask.chunk(part, *SIZES)
    assert torch.equal(chunk.expand_as(rows), rows)


def test_a_chunk_of_a_long_mask_builds_nothing_else() -> None:
    asked: list[int] = []

    def rule(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        asked.append((query - key).numel())
        return key <= query

    chunk = Mask.from_rule(rule).chunk(slice(512, 514), 1, 1, 4096, 4096)
    assert max(asked) == chunk.numel() == 2 * 4096
