"""Positions, each with one fault; `breaks` names the promise that must catch it."""

import torch
from einops import einsum, rearrange, repeat
from torch import Tensor, nn

from variants import Dims
from variants.positions import ALiBi, Learned, Position, RoPE, Sinusoidal
from variants.positions.position import BeyondTableError


class LateSlopes(ALiBi):
    """Slopes that start one head late; every declared fact is still true.

    The paper's slopes of 8 heads are 1/2, 1/4 … 1/256 (arXiv:2108.12409, section 3).

    >>> bias = LateSlopes(Dims(8, 8, 1, 1)).bias(torch.tensor([[0]]), torch.tensor([[1]]))
    >>> bias.flatten().tolist()[:3]
    [-0.5, -0.25, -0.125]
    """

    name = "late_slopes"
    breaks = "the_examples_in_its_docstring_are_true"

    def bias(self, q_index: Tensor, k_index: Tensor) -> Tensor:
        return 2 * super().bias(q_index, k_index)


class ReadsTheLargest(Sinusoidal):
    """Looks for the largest index also where there is none."""

    name = "reads_the_largest"
    breaks = "shapes_and_dtypes_are_kept"

    def embed(self, index: Tensor) -> Tensor:
        assert torch.compiler.is_compiling() or index.max() < 100_000
        return super().embed(index)


class TurnsByHead(RoPE):
    """Angles that grow along the axis of heads instead of that of tokens."""

    name = "turns_by_head"
    breaks = "declared_order_is_true"

    def rotate(
        self, q: Tensor, k: Tensor, q_index: Tensor, k_index: Tensor
    ) -> tuple[Tensor, Tensor]:
        pattern = "batch heads seq d_head -> batch seq heads d_head"
        heads = torch.arange(q.shape[1]).unsqueeze(0)
        turned = super().rotate(rearrange(q, pattern), rearrange(k, pattern), heads, heads)
        back = "batch seq heads d_head -> batch heads seq d_head"
        return rearrange(turned[0], back), rearrange(turned[1], back)


class TurnsByFirstSample(RoPE):
    """Every sample of a batch is turned by the indices of the first."""

    name = "turns_by_first_sample"
    breaks = "each_sample_is_placed_by_its_own_indices"

    def rotate(
        self, q: Tensor, k: Tensor, q_index: Tensor, k_index: Tensor
    ) -> tuple[Tensor, Tensor]:
        return super().rotate(q, k, q_index[:1], k_index[:1])


class LowPhases(Position):
    """Rotation by angles that take the precision of the model."""

    name = "low_phases"
    distance_only = True
    breaks = "phases_are_exact_in_a_low_precision_model"

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        frequency = 100.0 ** -(torch.arange(0, dims.d_head, 2) / dims.d_head)
        self.register_buffer("frequency", frequency, persistent=False)

    def rotate(
        self, q: Tensor, k: Tensor, q_index: Tensor, k_index: Tensor
    ) -> tuple[Tensor, Tensor]:
        return self._turned(q, q_index), self._turned(k, k_index)

    def _turned(self, heads: Tensor, index: Tensor) -> Tensor:
        frequency = self.get_buffer("frequency")
        angle = einsum(index.to(frequency), frequency, "batch seq, pair -> batch seq pair")
        angle = rearrange(angle, "batch seq pair -> batch 1 seq pair")
        first, second = rearrange(heads, "... (pair two) -> two ... pair", two=2)
        turned = [
            first * angle.cos() - second * angle.sin(),
            first * angle.sin() + second * angle.cos(),
        ]
        return rearrange(turned, "two ... pair -> ... (pair two)")


class RoundedTable(Sinusoidal):
    """A table whose indices are rounded to bfloat16, which knows whole numbers to 256."""

    name = "rounded_table"
    breaks = "rows_of_an_absolute_table_stay_distinct"

    def embed(self, index: Tensor) -> Tensor:
        return super().embed(index.bfloat16().long())


class DoubledExponent(Sinusoidal):
    """The index of a pair, already a step of two, is doubled once more.

    >>> DoubledExponent(Dims(6, 1, 6, 1)).embed(torch.tensor([[1]]))[0, 0, :4]
    tensor([0.8415, 0.5403, 0.0464, 0.9989], dtype=torch.float64)
    """

    name = "doubled_exponent"
    breaks = "the_examples_in_its_docstring_are_true"

    def __init__(self, dims: Dims, base: float = 10_000.0) -> None:
        super().__init__(dims, base**2)


class OneRowForAll(Learned):
    """All tokens of a sequence get the row of its first."""

    name = "one_row_for_all"
    breaks = "declared_order_is_true"

    def embed(self, index: Tensor) -> Tensor:
        return super().embed(repeat(index[:, :1], "batch 1 -> batch seq", seq=index.shape[1]))


class CountsColumns(Sinusoidal):
    """Positions counted from the first column, so that left padding shifts them."""

    name = "counts_columns"
    breaks = (
        "a_sample_alone_equals_itself_in_any_batch",
        "packed_documents_are_encoded_as_they_would_be_alone",
        "places_are_told_by_indices_alone",
    )

    def embed(self, index: Tensor) -> Tensor:
        return super().embed(torch.arange(index.shape[1]).unsqueeze(0))


class CachedByLength(Sinusoidal):
    """The rows of the first call of each length serve all later ones."""

    name = "cached_by_length"
    breaks = "the_order_of_calls_does_not_matter"

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.seen: dict[int, Tensor] = {}

    def embed(self, index: Tensor) -> Tensor:
        length = index.shape[1]
        if length not in self.seen:
            self.seen[length] = super().embed(index[:1])
        return self.seen[length]


class SavedTable(Sinusoidal):
    """A table as long as the longest call so far, which is saved with the weights."""

    name = "saved_table"
    breaks = "weights_travel_to_a_new_encoder_of_any_length"

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.register_buffer("rows", super().embed(torch.arange(4).unsqueeze(0)))

    def embed(self, index: Tensor) -> Tensor:
        longest = max(int(index.max()) + 1, self.get_buffer("rows").shape[1])
        self.rows = super().embed(torch.arange(longest).unsqueeze(0))
        return self.rows[0, index]


class SavedConstant(ALiBi):
    """Slopes that could be worked out again take room in every saved state."""

    name = "saved_constant"
    breaks = "only_what_training_changes_is_saved"

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.register_buffer("factor", torch.ones(dims.n_heads))

    def bias(self, q_index: Tensor, k_index: Tensor) -> Tensor:
        return super().bias(q_index, k_index) * rearrange(self.get_buffer("factor"), "h -> h 1 1")


class LeftBehind(ALiBi):
    """A tensor that is no buffer stays on the first device."""

    name = "left_behind"
    breaks = "every_tensor_moves_with_the_model"

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.factors = [torch.ones(dims.n_heads, 1, 1)]

    def bias(self, q_index: Tensor, k_index: Tensor) -> Tensor:
        return super().bias(q_index, k_index) * self.factors[0]


class SeesNoDirectionItSays(RoPE):
    name = "sees_no_direction_it_says"
    sees_direction = False
    breaks = "declared_direction_is_true"


class RelativeItSays(Sinusoidal):
    name = "relative_it_says"
    distance_only = True
    breaks = "declared_distance_is_true"


class RaisesItSays(Learned):
    """Indices beyond the table get its last row, silently."""

    name = "raises_it_says"
    breaks = "declared_policy_beyond_is_what_happens"

    def embed(self, index: Tensor) -> Tensor:
        return self.table(index.clamp(max=self.max_length - 1))


class ExtendsItSays(Learned):
    """It raises beyond its table."""

    name = "extends_it_says"
    breaks = "declared_policy_beyond_is_what_happens"

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.beyond = "extends"


class RefusesWithoutANumber(Learned):
    """What is raised does not tell how long a sequence may be."""

    name = "refuses_without_a_number"
    breaks = "declared_policy_beyond_is_what_happens"

    def embed(self, index: Tensor) -> Tensor:
        try:
            return super().embed(index)
        except BeyondTableError:
            raise BeyondTableError("too long") from None


class ResamplesItSays(Sinusoidal):
    """What it says about an index is the same in sequences of all lengths."""

    name = "resamples_it_says"
    beyond = "resamples"
    breaks = "declared_policy_beyond_is_what_happens"


class ClampsItSays(Sinusoidal):
    name = "clamps_it_says"
    beyond = "clamps"
    breaks = "declared_policy_beyond_is_what_happens"


class IgnoresItsOption(ALiBi):
    name = "ignores_its_option"
    breaks = "every_option_has_an_effect_or_is_rejected"

    def __init__(self, dims: Dims, steepness: float = 1.0) -> None:
        super().__init__(dims)
        self.steepness = steepness


class IgnoresItsSwitch(RoPE):
    """The switch works alone, and is silently overruled by another option."""

    name = "ignores_its_switch"
    breaks = "every_option_has_an_effect_or_is_rejected"

    def __init__(self, dims: Dims, slow: bool = False, fast: bool = False) -> None:
        super().__init__(dims, theta=100.0 if fast else 1e6 if slow else 1e4)


class NeedsACausalMaskForNothing(ALiBi):
    """An option that demands another mask, and does nothing under it."""

    name = "needs_a_causal_mask_for_nothing"
    breaks = "every_option_has_an_effect_or_is_rejected"

    def __init__(self, dims: Dims, backwards: bool = False) -> None:
        super().__init__(dims)
        self.causal_only = backwards


class OneTableForAll(Learned):
    """Layers that should have tables of their own share one that lives in the class."""

    name = "one_table_for_all"
    breaks = "no_two_layers_share_or_equal_weights"
    shared = nn.Embedding(512, 16)

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.table = self.shared


class DrawsFromEverybody(Sinusoidal):
    """Random places from the global generator."""

    name = "draws_from_everybody"
    breaks = "drawn_places_keep_order_and_come_from_their_generator"

    def place(self, index: Tensor, generator: torch.Generator | None) -> Tensor:
        return torch.randperm(512).sort().values[index]


class DrawsOutOfOrder(Sinusoidal):
    """Random places that nobody has sorted."""

    name = "draws_out_of_order"
    breaks = "drawn_places_keep_order_and_come_from_their_generator"

    def place(self, index: Tensor, generator: torch.Generator | None) -> Tensor:
        return torch.randperm(512, generator=generator)[index]


class OffsetInEvaluation(Sinusoidal):
    """A random offset from the global generator, in evaluation as well."""

    name = "offset_in_evaluation"
    breaks = "evaluation_is_deterministic"

    def embed(self, index: Tensor) -> Tensor:
        return super().embed(index + torch.randint(100, ()))


class ReadsAValue(Sinusoidal):
    """A branch on the value of a tensor, which stops the capture of a whole graph."""

    name = "reads_a_value"
    breaks = "it_is_captured_whole_by_dynamo"

    def embed(self, index: Tensor) -> Tensor:
        return super().embed(index) if int(index.max()) > 2 else super().embed(index + 0)


class PhasesUnderAutocast(RoPE):
    """A product of indices and frequencies that autocast takes down to bfloat16."""

    name = "phases_under_autocast"
    breaks = "autocast_changes_rounding_alone"

    def rotate(
        self, q: Tensor, k: Tensor, q_index: Tensor, k_index: Tensor
    ) -> tuple[Tensor, Tensor]:
        one = torch.ones(1, 1)
        q_index, k_index = (
            rearrange(rearrange(index.float(), "b seq -> b seq 1") @ one, "b seq 1 -> b seq").long()
            for index in (q_index, k_index)
        )
        return super().rotate(q, k, q_index, k_index)


class WholeNumberBias(Position):
    """A bias of whole numbers, which one backend takes and another does not."""

    name = "whole_number_bias"
    sees_direction = False
    distance_only = True
    breaks = "backends_agree_forward_and_backward"

    def bias(self, q_index: Tensor, k_index: Tensor) -> Tensor:
        query = rearrange(q_index, "batch query -> batch 1 query 1")
        key = rearrange(k_index, "batch key -> batch 1 1 key")
        return -(query - key).abs().expand(-1, self.dims.n_heads, -1, -1)


class ShiftsInPlace(Sinusoidal):
    """The indices that it is handed are moved for everybody."""

    name = "shifts_in_place"
    breaks = "inputs_are_left_as_they_are"

    def embed(self, index: Tensor) -> Tensor:
        return super().embed(index.add_(1))
