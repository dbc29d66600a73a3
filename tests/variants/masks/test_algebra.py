"""The laws of the algebra, for what masks allow and for when they are equal."""

from collections.abc import Iterator

import jaxtyping
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from registry import build_encoder
from tests.messages import Messages
from variants.masks import (
    Blocks,
    Causal,
    Dense,
    Dilated,
    Documents,
    Full,
    GlobalTokens,
    Mask,
    Padding,
    Prefix,
    RandomBlocks,
    Window,
)

BATCH, HEADS, N = 2, 2, 5
LEFT = Padding(keep=torch.tensor([[False, False, True, True, True], [True] * 5]))
ATOMS: list[Mask] = [
    Full(),
    Causal(),
    Window(radius=1),
    Window(left=2, right=0),
    Prefix(2),
    Dilated(2),
    Blocks(2),
    GlobalTokens(1),
    RandomBlocks(1, count=2),
    LEFT,
    Padding(lengths=[3, 5]),
    Documents(torch.tensor([[0, 0, 0, 1, 1]])),
    Dense(torch.rand(5, 5, generator=torch.Generator().manual_seed(0)) < 0.5),
]
masks = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a, b: a | b, inner, inner),
        st.builds(lambda a: ~a, inner),
    ),
    max_leaves=5,
)


def cells(mask: Mask) -> Tensor:
    return mask.dense(BATCH, HEADS, N, N).expand(BATCH, HEADS, N, N)


def same(one: Tensor | None, other: Tensor | None) -> bool:
    return torch.equal(one, other) if one is not None and other is not None else one is other


def assert_equal(left: Mask, right: Mask) -> None:
    """Equal as values, in their hash, in what they allow, and in all that an encoder asks them."""
    assert left == right
    assert hash(left) == hash(right)
    assert torch.equal(cells(left), cells(right))
    assert same(left.keep(BATCH, N), right.keep(BATCH, N))
    assert torch.equal(
        left.positions(BATCH, N).expand(BATCH, N), right.positions(BATCH, N).expand(BATCH, N)
    )


@pytest.fixture(autouse=True, scope="module")
def _unchecked() -> Iterator[None]:
    """The laws ask thousands of small questions; what they call is checked by the other files."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


law = settings(max_examples=100, deadline=None, derandomize=True, database=None)


@law
@given(masks, masks)
def test_and_or_commute(a: Mask, b: Mask) -> None:
    assert_equal(a & b, b & a)
    assert_equal(a | b, b | a)


@law
@given(masks, masks, masks)
def test_and_or_are_associative(a: Mask, b: Mask, c: Mask) -> None:
    assert_equal((a & b) & c, a & (b & c))
    assert_equal((a | b) | c, a | (b | c))


@law
@given(masks, masks, masks)
def test_each_distributes_over_the_other(a: Mask, b: Mask, c: Mask) -> None:
    assert_equal(a & (b | c), (a & b) | (a & c))
    assert_equal(a | (b & c), (a | b) & (a | c))


@law
@given(masks)
def test_full_and_its_opposite_are_identities_and_absorb(a: Mask) -> None:
    assert_equal(a & Full(), a)
    assert_equal(a | ~Full(), a)
    assert_equal(a | Full(), Full())
    assert_equal(a & ~Full(), ~Full())


@law
@given(masks, masks)
def test_absorption_and_idempotence(a: Mask, b: Mask) -> None:
    assert_equal(a & a, a)
    assert_equal(a | a, a)
    assert_equal(a & (a | b), a)
    assert_equal(a | (a & b), a)


@law
@given(masks)
def test_a_mask_and_its_opposite_make_everything_or_nothing(a: Mask) -> None:
    assert_equal(a | ~a, Full())
    assert_equal(a & ~a, ~Full())


@law
@given(masks)
def test_a_double_negation_is_no_negation(a: Mask) -> None:
    assert_equal(~~a, a)


@law
@given(masks, masks)
def test_the_laws_of_de_morgan(a: Mask, b: Mask) -> None:
    assert_equal(~(a & b), ~a | ~b)
    assert_equal(~(a | b), ~a & ~b)


@law
@given(masks, masks)
def test_equal_masks_allow_the_same(a: Mask, b: Mask) -> None:
    if a == b:
        assert_equal(a, b)
    assert (a == b) == (b == a)


@law
@given(masks)
def test_rows_are_those_of_the_whole_mask(a: Mask) -> None:
    rows = torch.tensor([3, 0, 4])
    some = a.rows(rows, BATCH, HEADS, N, N).expand(BATCH, HEADS, 3, N)
    assert torch.equal(some, cells(a)[:, :, rows])


@law
@given(st.sampled_from(ATOMS), st.sampled_from(ATOMS))
def test_operators_work_cell_by_cell(a: Mask, b: Mask) -> None:
    if any(mask.counts_real_tokens for mask in (a, b)):
        return  # these rules read the padding that they are combined with
    assert torch.equal(cells(a & b), cells(a) & cells(b))
    assert torch.equal(cells(a | b), cells(a) | cells(b))
    assert torch.equal(cells(~a), ~cells(a))


def test_padding_is_known_however_the_mask_is_written() -> None:
    a, b, padding = Causal(), Window(radius=1), Padding(lengths=[3, 5])
    for mask in (
        *(padding & a, padding & a | padding & b, ~(~padding | ~a), padding | (padding & a)),
        *((padding | a) & padding, ~~padding & (a | b), Padding(lengths=[3, 5]) & a | padding & b),
    ):
        assert same(mask.keep(BATCH, N), padding.keep(BATCH, N)), mask
    for mask in (padding | a, ~padding, padding & a | b, padding & ~padding, ~(padding & a)):
        assert mask.keep(BATCH, N) is None, mask


def test_documents_are_known_however_the_mask_is_written() -> None:
    a, b, packed = Causal(), Window(radius=1), Documents(torch.tensor([[0, 0, 0, 1, 1]]))
    for mask in (packed & a, packed & a | packed & b, ~(~packed | ~a)):
        assert mask.positions(1, N).tolist() == [[0, 1, 2, 0, 1]], mask
    assert (packed | a).positions(1, N).tolist() == [[0, 1, 2, 3, 4]]


def test_two_ways_to_write_a_padded_mask_are_one_encoder() -> None:
    encoder = build_encoder(
        {"vocab_size": 8, "d_model": 8, "n_heads": 2, "n_layers": 1, "position": "learned"}, seed=0
    )
    tokens = torch.arange(10).reshape(2, 5) % 8
    one, other = LEFT & (Causal() | Prefix(2)), LEFT & Causal() | Prefix(2) & LEFT
    assert one == other
    assert torch.equal(encoder(tokens, mask=one).hidden, encoder(tokens, mask=other).hidden)


def test_a_forward_compares_no_tensors_that_it_need_not(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = Padding(lengths=[3, 5]), Padding(lengths=[4, 5])
    monkeypatch.setattr(Padding, "key", lambda self: pytest.fail("the lengths were read"))
    for mask in (one & other & ~Window(radius=1), one & (Causal() | Prefix(1)) & other):
        assert same(mask.keep(BATCH, N), Padding(lengths=[3, 5]).keep(BATCH, N))
        assert mask.dense(BATCH, 1, N, N).shape == (BATCH, 1, N, N)


def test_a_rule_said_twice_is_said_once() -> None:
    assert type(Causal() & Causal()) is Causal
    assert type(Window(radius=1) | Window(left=1, right=1)) is Window
    assert type(Causal() & Causal("last")) is not Causal


def test_different_rules_are_not_equal() -> None:
    different = [mask for atom in ATOMS for mask in (atom, ~atom)]
    different += [Causal() & Window(radius=1), Causal() | Window(radius=1), Causal("first")]
    different += [Padding(lengths=[3, 4]), Prefix(3), Window(radius=2), Dense(torch.ones(5, 5) > 0)]
    assert len(set(different)) == len(different)
    for number, mask in enumerate(different):
        assert all(mask != other for other in different[number + 1 :])


def test_equality_reads_the_numbers_of_tensors() -> None:
    ids = torch.tensor([[0, 0, 1]])
    assert Documents(ids) == Documents(ids.clone())
    assert Padding(lengths=[1, 2]) == Padding(lengths=torch.tensor([1, 2]))
    assert Padding(lengths=[1, 2]) != Padding(lengths=[2, 1])
    assert Dense(torch.ones(2, 2) > 0) != Dense(torch.ones(1, 4) > 0)


class Stripes(Mask):
    """A mask of the user's own, with a tensor among its options."""

    def __init__(self, columns: Tensor) -> None:
        self.columns = columns

    def allows(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return self.columns[key]


def test_a_mask_of_ones_own_joins_the_algebra() -> None:
    even, odd = Stripes(torch.tensor([1, 0, 1, 0]) > 0), Stripes(torch.tensor([0, 1, 0, 1]) > 0)
    assert (even & Causal()).draw(4) == "#...\n#...\n#.#.\n#.#."
    assert even == Stripes(torch.tensor([1, 0, 1, 0]) > 0) != odd
    assert even & odd == odd & even
    assert (even | odd).dense(1, 1, 4, 4).all()


def test_a_mask_is_not_equal_to_a_tensor_and_combines_with_masks_alone() -> None:
    assert Causal() != "causal"
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = Causal() & torch.ones(2, 2).bool()  # type: ignore[operator]
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = Causal() | None  # type: ignore[operator]


def test_a_rule_must_answer_with_a_bool_tensor(messages: Messages) -> None:
    floats = Mask.from_rule(lambda b, h, q, k: (q - k).float())
    number = Mask.from_rule(lambda b, h, q, k: True)  # type: ignore[arg-type,return-value]
    with messages.raises(TypeError):
        floats.dense(1, 1, 2, 2)
    with messages.raises(TypeError):
        (Causal() & number).dense(1, 1, 2, 2)

    class Distance(Mask):
        def allows(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return (query - key).float()

    with messages.raises(TypeError):
        (~Distance()).dense(1, 1, 2, 2)


def test_a_tensor_is_no_rule(messages: Messages) -> None:
    with messages.raises(TypeError):
        Mask.from_rule(torch.ones(2, 2) > 0)  # type: ignore[arg-type]


def test_a_rule_must_answer_for_the_cells_that_it_is_asked_about(messages: Messages) -> None:
    table = torch.eye(3) > 0
    indexed = Mask.from_rule(lambda batch, head, query, key: table[query, key])
    assert torch.equal(indexed.chunk(slice(1, 3), 2, 2, 3, 3)[0, 0], table[1:])
    for whole in (table, table.reshape(1, 1, 3, 3)):
        mask = Mask.from_rule(lambda batch, head, query, key, whole=whole: whole)
        with messages.raises(ValueError):
            mask.chunk(slice(1, 2), 2, 2, 3, 3)
    always = Mask.from_rule(lambda batch, head, query, key: torch.tensor(True))
    assert always.dense(2, 2, 3, 3).shape == (1, 1, 1, 1)


def test_a_mask_without_a_rule_says_what_to_override(messages: Messages) -> None:
    class Empty(Mask):
        pass

    with messages.raises(NotImplementedError):
        Empty().dense(1, 1, 2, 2)


def test_a_mask_prints_as_it_is_written() -> None:
    assert repr(Causal() & ~Window(radius=2)) == "(Causal(align=None) & ~Window(left=2, right=2))"
    assert repr(Prefix(2) | Full() & Blocks(3)) == "(Prefix(length=2) | Blocks(size=3, radius=0))"
    assert repr(Mask.from_rule(by_head)) == "Mask.from_rule(by_head)"


def by_head(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return torch.where(head == 0, key <= query, key >= query)


def test_a_mask_is_neither_true_nor_false(messages: Messages) -> None:
    with messages.raises(TypeError):
        _ = Causal() and Full()
