"""Attention backends and masks, each with one fault."""

import random
from dataclasses import replace
from typing import Any

import torch.nn.functional as F
from einops import einsum, rearrange
from torch import Tensor

from variants.attentions import SDPA, Explicit, LinearAttention
from variants.masks import Causal, Dilated, Full, Mask, Padding, Prefix, Window
from variants.masks.mask import Repeats, Sizes
from variants.positions import Position


class WrongHeadSplit(Explicit):
    """What leaves the heads is read as if channels came before heads."""

    name = "wrong_head_split"
    breaks = "outputs_and_gradients_are_those_of_the_formula"

    def with_weights(self, *given: Any) -> tuple[Tensor, Tensor]:
        mixed, weights = super().with_weights(*given)
        flat = rearrange(mixed, "batch heads seq d_head -> batch seq (d_head heads)")
        pattern = "batch seq (heads d_head) -> batch heads seq d_head"
        return rearrange(flat, pattern, heads=mixed.shape[1]), weights


class SoftmaxOverQueries(Explicit):
    name = "softmax_over_queries"
    breaks = "weights_are_those_of_the_formula_where_they_can_be_asked_for"

    def weights(self, q: Tensor, k: Tensor, prepared: Any) -> Tensor:
        pattern = "batch heads query d_head, batch heads key d_head -> batch heads query key"
        scores = einsum(q * q.shape[-1] ** -0.5, k, pattern)
        scores = scores.masked_fill(~prepared.allowed, float("-inf"))
        return scores.softmax(dim=-2).masked_fill(~prepared.some, 0.0).nan_to_num()


class ScaledByTheModel(SDPA):
    """Scores divided by √d_model instead of √d_head."""

    name = "scaled_by_the_model"
    breaks = "outputs_and_gradients_are_those_of_the_formula"

    def forward(self, q: Tensor, *given: Any) -> Tensor:
        return super().forward(q * (self.dims.d_head / self.dims.d_model) ** 0.5, *given)


class BiasDropsMask(SDPA):
    """Where there is a bias, the mask is forgotten."""

    name = "bias_drops_mask"
    breaks = "outputs_and_gradients_are_those_of_the_formula"

    def forward(self, q: Tensor, k: Tensor, v: Tensor, prepared: Any, *more: Any) -> Tensor:
        bias = prepared.position.bias(prepared.q_index, prepared.k_index)
        if bias is None:
            return super().forward(q, k, v, prepared, *more)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype))


class FiniteMask(Explicit):
    """Masked scores are low but finite, so that lower ones lose against them."""

    name = "finite_mask"
    breaks = "a_masked_key_never_wins_however_low_the_others_score"

    def weights(self, q: Tensor, k: Tensor, prepared: Any) -> Tensor:
        pattern = "batch heads query d_head, batch heads key d_head -> batch heads query key"
        scores = einsum(q * q.shape[-1] ** -0.5, k, pattern)
        shares = scores.masked_fill(~prepared.allowed, -1e4).softmax(dim=-1)
        return shares.masked_fill(~prepared.some, 0.0)


class OnlyPaddingCounts(SDPA):
    """Every other rule is taken for a full mask."""

    name = "only_padding_counts"
    breaks = "masked_keys_cannot_influence"

    def prepare(self, mask: Mask, *given: Any) -> Any:
        padded = any(isinstance(atom, Padding) for atom in mask.atoms())
        return super().prepare(mask if padded or type(mask) is Causal else Full(), *given)


class EmptyRowsAreNaN(Explicit):
    name = "empty_rows_are_nan"
    breaks = "queries_that_may_attend_to_nothing_leave_everything_finite"

    def weights(self, q: Tensor, k: Tensor, prepared: Any) -> Tensor:
        pattern = "batch heads query d_head, batch heads key d_head -> batch heads query key"
        scores = einsum(q * q.shape[-1] ** -0.5, k, pattern)
        return scores.masked_fill(~prepared.allowed, float("-inf")).softmax(dim=-1)


class EmptyRowsAreMeans(EmptyRowsAreNaN):
    """A query without keys gets the mean of all values."""

    name = "empty_rows_are_means"
    breaks = "a_query_without_keys_gets_zero_and_gives_zero_gradient"

    def weights(self, q: Tensor, k: Tensor, prepared: Any) -> Tensor:
        return super().weights(q, k, prepared).nan_to_num(1 / k.shape[-2])


class OneTokenAhead(SDPA):
    """Its causal mask has its diagonal one key too late."""

    name = "one_token_ahead"
    breaks = "causal_configs_never_see_the_future"

    def prepare(self, mask: Mask, *given: Any) -> Any:
        late = Mask.from_rule(lambda batch, head, query, key: key <= query + 1)
        return super().prepare(late if type(mask) is Causal else mask, *given)


class DropsAlways(SDPA):
    name = "drops_always"
    breaks = "dropout_acts_on_weights_and_only_when_it_is_asked_for"

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, prepared: Any, dropout: float = 0.0
    ) -> Tensor:
        return super().forward(q, k, v, prepared, max(dropout, 0.1))


class CachedMask(SDPA):
    """What was prepared for a length serves every later call of that length."""

    name = "cached_mask"
    breaks = "the_order_of_calls_does_not_matter"
    cache: Any = None

    def prepare(
        self, mask: Mask, position: Position, q_index: Tensor, k_index: Tensor, sizes: Sizes
    ) -> Any:
        if self.cache is None or self.cache[0] != sizes:
            self.cache = (sizes, super().prepare(mask, position, q_index, k_index, sizes))
        return self.cache[1]


class RaggedSquare(SDPA):
    """It takes for granted that there are as many keys as queries."""

    name = "ragged_square"
    breaks = "queries_and_keys_may_differ_in_number"

    def forward(self, q: Tensor, k: Tensor, v: Tensor, *given: Any) -> Tensor:
        return super().forward(q, k[:, :, : q.shape[2]], v[:, :, : q.shape[2]], *given)


class ScalesTheQueriesInPlace(SDPA):
    name = "scales_the_queries_in_place"
    breaks = "its_inputs_are_left_as_they_are"

    def forward(self, q: Tensor, *given: Any) -> Tensor:
        return super().forward(q.mul_(1.5) / 1.5, *given)


class CountsPads(Prefix):
    """A prefix counted from the first column, so that left padding uses it up."""

    name = "counts_pads"
    counts_real_tokens = False
    breaks = (
        "padding_changes_nothing_for_real_tokens",
        "packed_documents_get_the_cells_that_they_would_get_alone",
    )


class SaysItIsFull(Window):
    """A mark by which backends leave it out."""

    name = "says_it_is_full"
    unrestricted = True
    examples = ({"radius": 1},)
    breaks = "what_it_forbids_has_no_influence_in_any_backend"


class NumbersForCells(Mask):
    name = "numbers_for_cells"
    breaks = "cells_are_boolean_and_broadcast"

    def allows(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (key <= query).long()


class SeesLaterUnsaid(Dilated):
    name = "sees_later_unsaid"
    breaks = "what_it_says_of_later_keys_and_of_repeating_is_true"
    examples = ({"rate": 3},)
    sees_later = False


class RepeatsLaterThanItSays(Dilated):
    name = "repeats_later_than_it_says"
    breaks = "what_it_says_of_later_keys_and_of_repeating_is_true"
    examples = ({"rate": 3},)

    def repeats(self) -> Repeats:
        return Repeats(rate=self.rate - 1)


class StartsLaterThanItSays(Prefix):
    name = "starts_later_than_it_says"
    breaks = "what_it_says_of_later_keys_and_of_repeating_is_true"
    examples = ({"length": 3},)

    def repeats(self) -> Repeats:
        return Repeats(start=self.length - 1)


class NeverTheSame(Window):
    """Two masks of one rule are never equal."""

    name = "never_the_same"
    breaks = "it_obeys_the_laws_of_the_algebra"
    examples = ({"radius": 1},)

    def key(self) -> Any:
        return random.random()


class AnotherRuleInRows(Window):
    """Its rows are not those of the whole."""

    name = "another_rule_in_rows"
    breaks = "every_form_tells_the_same_cells"
    examples = ({"radius": 1},)

    def rows(self, rows: Tensor, batch: int, heads: int, queries: int, keys: int) -> Tensor:
        cells = super().rows(rows, batch, heads, queries, keys)
        return cells if len(rows) == queries else ~cells


class ForgetsItsOption(Prefix):
    name = "forgets_its_option"
    breaks = "every_option_has_an_effect_or_is_rejected"

    def __init__(self, length: int) -> None:
        super().__init__(2)


class FutureInTheBlock(LinearAttention):
    """Under a causal mask a query gets the sum over all keys."""

    name = "future_in_the_block"
    breaks = "causal_configs_never_see_the_future"

    def prepare(self, *given: Any) -> Any:
        return replace(super().prepare(*given), causal=False)


class SumsOverPads(LinearAttention):
    """Keys that are padding stay in the sums."""

    name = "sums_over_pads"
    breaks = "a_sample_alone_equals_itself_in_any_batch"

    def prepare(self, *given: Any) -> Any:
        return replace(super().prepare(*given), keep=None)


class WeightsWithoutTheirSum(LinearAttention):
    """What is shown as weights are terms, not shares, and mixes otherwise than the outputs."""

    name = "weights_without_their_sum"
    breaks = "asking_for_weights_changes_no_output_and_shows_no_masked_key"

    def with_weights(self, *given: Any) -> tuple[Tensor, Tensor]:
        mixed, weights = super().with_weights(*given)
        return 2 * mixed, 2 * weights
