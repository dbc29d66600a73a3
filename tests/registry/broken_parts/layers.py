"""Feed-forward layers, norms, placements, readouts and initializers, each with one fault."""

import random
from collections.abc import Callable

import torch
import torch.nn.functional as F
from einops import reduce
from torch import Tensor, nn

from variants import Dims
from variants.feedforwards import GELU, FeedForward, ReLU, SwiGLU
from variants.initializers import Normal, Xavier
from variants.norm_placements import Post, Pre
from variants.norms import LayerNorm, RMSNorm
from variants.readouts import Mean


class TwiceAsWide(GELU):
    """Its hidden layer is twice as wide as was asked for."""

    name = "twice_as_wide"
    breaks = "a_given_d_ff_is_the_width_of_its_map_into_the_stream"

    def __init__(self, dims: Dims, d_ff: int = 64) -> None:
        super().__init__(dims, d_ff=2 * d_ff)


class NamesItsMapsAnew(FeedForward):
    """No initializer that scales by depth finds what it writes into the stream."""

    name = "names_its_maps_anew"
    breaks = "a_given_d_ff_is_the_width_of_its_map_into_the_stream"

    def __init__(self, dims: Dims, d_ff: int = 64) -> None:
        super().__init__(dims)
        self.up = nn.Linear(dims.d_model, d_ff, bias=dims.bias)
        self.down = nn.Linear(d_ff, dims.d_model, bias=dims.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.up(x).relu())


class GateInTheWrongHalf(FeedForward):
    """SiLU goes to the half that should be multiplied plainly; all shapes are right.

    With the gate first, as in the paper: SiLU(1)·2 = 1.4621.

    >>> layer = GateInTheWrongHalf(Dims(1, 1, 1, 1), d_ff=1)
    >>> layer.load_state_dict({"both.weight": torch.tensor([[1.0], [2.0]]),
    ...                        "to_model.weight": torch.ones(1, 1)})
    <All keys matched successfully>
    >>> round(layer(torch.ones(1, 1)).item(), 4)
    1.4621
    """

    name = "gate_in_the_wrong_half"
    breaks = "the_examples_in_its_docstring_are_true"

    def __init__(self, dims: Dims, d_ff: int = 8) -> None:
        super().__init__(dims)
        self.both = nn.Linear(dims.d_model, 2 * d_ff, bias=False)
        self.to_model = nn.Linear(d_ff, dims.d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, hidden = self.both(x).chunk(2, dim=-1)
        return self.to_model(gate * F.silu(hidden))


class SeesItsNeighbour(GELU):
    name = "sees_its_neighbour"
    breaks = "tokens_do_not_see_one_another"

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + x.roll(1, dims=-2) if x.ndim > 1 else x)


class DropsInEvaluation(GELU):
    """The functional dropout knows no modes."""

    name = "drops_in_evaluation"
    breaks = "evaluation_is_deterministic"

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(super().forward(x), 0.1)


class NeverUsed(GELU):
    name = "never_used"
    breaks = "gradients_are_finite_and_reach_every_parameter"

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.spare = nn.Linear(dims.d_model, dims.d_model)


class CutOff(GELU):
    """A parameter whose gradient is lost on the way."""

    name = "cut_off"
    breaks = "gradients_are_finite_and_reach_every_parameter"

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.gain = nn.Parameter(torch.ones(dims.d_model))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * self.gain.detach()


class WritesIntoItsInput(ReLU):
    name = "writes_into_its_input"
    breaks = "its_input_is_left_as_it_is"

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.mul_(2))


class OneMatrixForAll(ReLU):
    """Every layer built with these sizes shares a linear map."""

    name = "one_matrix_for_all"
    breaks = "no_two_layers_share_or_equal_weights"
    shared = nn.Linear(16, 64)

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.to_hidden = self.shared


class ClonedLayers(ReLU):
    """Every layer starts from one seed."""

    name = "cloned_layers"
    initializes_itself = True
    breaks = "no_two_layers_share_or_equal_weights"

    def __init__(self, dims: Dims) -> None:
        torch.manual_seed(0)
        super().__init__(dims)


class SeedOfItsOwn(ReLU):
    """Its matrices are the same whatever the seed of the encoder."""

    name = "seed_of_its_own"
    initializes_itself = True
    breaks = "another_seed_gives_other_weights"

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        generator = torch.Generator().manual_seed(0)
        for parameter in self.parameters():
            nn.init.normal_(parameter, generator=generator)


class InitializedByChance(ReLU):
    """Its first weights come from a generator that no seed reaches."""

    name = "initialized_by_chance"
    breaks = "one_seed_gives_the_same_weights_whatever_came_before"

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.gain = nn.Parameter(torch.full((dims.d_model,), 1 + random.random()))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * self.gain


class NoiseOfItsOwn(GELU):
    """Noise from a generator of its own, which a second run of a block does not find again."""

    name = "noise_of_its_own"
    breaks = "gradient_checkpointing_changes_nothing"

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.generator = torch.Generator().manual_seed(0)

    def forward(self, x: Tensor) -> Tensor:
        noise = torch.randn(x.shape, generator=self.generator, dtype=x.dtype)
        return super().forward(x * (1 + noise) if self.training else x)


class CancelsDigits(GELU):
    """A detour over large numbers, on which low precision loses everything."""

    name = "cancels_digits"
    breaks = "the_result_does_not_depend_on_the_precision"

    def forward(self, x: Tensor) -> Tensor:
        return super().forward((x + 1000) - 1000)


class BranchesOnValues(GELU):
    name = "branches_on_values"
    breaks = ("it_works_under_vmap_with_explicit_attention", "it_is_captured_whole_by_dynamo")

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x if x.sum() > 0 else -x)


class AlwaysBiased(ReLU):
    name = "always_biased"
    breaks = "without_biases_there_are_none"

    def __init__(self, dims: Dims) -> None:
        super().__init__(dims)
        self.to_hidden = nn.Linear(dims.d_model, self.d_ff)


class AnswersInFloat32(RMSNorm):
    name = "answers_in_float32"
    breaks = "shapes_and_dtypes_are_kept"

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).float()


class WidthIgnored(SwiGLU):
    name = "width_ignored"
    breaks = "every_option_has_an_effect_or_is_rejected"

    def __init__(self, dims: Dims, d_ff: int | None = None) -> None:
        super().__init__(dims)


class OverTheBatch(LayerNorm):
    """Statistics over all tokens of a batch."""

    name = "over_the_batch"
    breaks = "samples_of_a_batch_know_nothing_of_one_another"

    def forward(self, x: Tensor) -> Tensor:
        return (x - x.mean()) / (x.var() + self.eps).sqrt() * self.weight + x * 0


class OverTheTokens(LayerNorm):
    """Statistics over the tokens of a sequence, axis 1 in place of the last."""

    name = "over_the_tokens"
    breaks = "tokens_are_normalized_by_themselves"

    def forward(self, x: Tensor) -> Tensor:
        mean, spread = x.mean(dim=-2, keepdim=True), x.std(dim=-2, keepdim=True, correction=0)
        return (x - mean) / (spread + self.eps) * self.weight


class LowStatistics(RMSNorm):
    """Squares in the precision of the model, where 300² is infinite."""

    name = "low_statistics"
    breaks = "half_precision_neither_overflows_nor_drowns_in_eps"

    def forward(self, x: Tensor) -> Tensor:
        return x * (x.square().mean(dim=-1, keepdim=True) + self.eps).rsqrt() * self.weight


class EpsOfItsPrecision(RMSNorm):
    """An eps that grows with the coarseness of the dtype."""

    name = "eps_of_its_precision"
    breaks = "half_precision_neither_overflows_nor_drowns_in_eps"

    def forward(self, x: Tensor) -> Tensor:
        exact = x.float() if x.dtype != torch.float64 else x
        size = (exact.square().mean(dim=-1, keepdim=True) + torch.finfo(x.dtype).eps).rsqrt()
        return (exact * size).to(x.dtype) * self.weight


class DividesByNothing(RMSNorm):
    """No eps: a row of zeros gives 0/0."""

    name = "divides_by_nothing"
    breaks = (
        "a_row_of_zeros_stays_finite_with_its_gradient",
        "a_sequence_of_pads_is_zero_and_adds_nothing_to_gradients",
    )

    def forward(self, x: Tensor) -> Tensor:
        return x / x.norm(dim=-1, keepdim=True) * x.shape[-1] ** 0.5 * self.weight


class TrainsOtherwise(RMSNorm):
    """In training, statistics of the batch join in."""

    name = "trains_otherwise"
    breaks = "training_without_dropout_equals_evaluation"

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x - x.mean() if self.training else x)


class NormalizedResidual(Pre):
    """The residual branch is the normalized stream."""

    name = "normalized_residual"
    breaks = "the_stream_is_normalized_once"

    def forward(self, x: Tensor, *sublayers: Callable[[Tensor], Tensor]) -> Tensor:
        (sublayer,) = sublayers
        x = self.before(x)
        return x + sublayer(x)


class NoFinalNorm(Pre):
    name = "no_final_norm"
    final_norm = False
    breaks = "what_leaves_the_encoder_is_normalized"


class NormalizedTwice(Post):
    name = "normalized_twice"
    final_norm = True
    breaks = "the_stream_is_normalized_once"


class CalledTwice(Pre):
    name = "called_twice"
    breaks = "each_sublayer_is_called_once_and_joins_the_stream"

    def forward(self, x: Tensor, *sublayers: Callable[[Tensor], Tensor]) -> Tensor:
        (sublayer,) = sublayers
        return x + (sublayer(self.before(x)) + sublayer(self.before(x))) / 2


class LosesTheStream(Pre):
    name = "loses_the_stream"
    breaks = "each_sublayer_is_called_once_and_joins_the_stream"

    def forward(self, x: Tensor, *sublayers: Callable[[Tensor], Tensor]) -> Tensor:
        (sublayer,) = sublayers
        return sublayer(self.before(x).detach())


class JoinsTheMean(Pre):
    """Each token is joined by what the sublayer says on average."""

    name = "joins_the_mean"
    breaks = "tokens_join_by_themselves"

    def forward(self, x: Tensor, *sublayers: Callable[[Tensor], Tensor]) -> Tensor:
        (sublayer,) = sublayers
        return x + sublayer(self.before(x)).mean(dim=1, keepdim=True)


class ReadsPads(Mean):
    """The mean over all places, pads included."""

    name = "reads_pads"
    breaks = "only_real_tokens_are_read"

    def forward(self, hidden: Tensor, keep: Tensor | None) -> Tensor:
        return reduce(hidden, "batch seq d_model -> batch d_model", "mean")


class NothingOverNothing(Mean):
    name = "nothing_over_nothing"
    breaks = "a_sequence_without_real_tokens_reads_zero"

    def forward(self, hidden: Tensor, keep: Tensor | None) -> Tensor:
        if keep is None:
            return super().forward(hidden, keep)
        return hidden.sum(dim=1) / keep.sum(dim=1, keepdim=True)


class LeavesBiases(Normal):
    name = "leaves_biases"
    breaks = "every_number_is_filled"

    def bias(self, bias: Tensor, fan_in: int, generator: torch.Generator) -> None:
        return None


class TakesTheGlobalGenerator(Xavier):
    name = "takes_the_global_generator"
    breaks = "numbers_come_from_the_given_generator_alone"

    def matrix(self, weight: Tensor, generator: torch.Generator) -> None:
        nn.init.xavier_uniform_(weight)


class AllZero(Xavier):
    """Matrices of zeros stay alike for ever."""

    name = "all_zero"
    breaks = "it_learns_what_it_can_express"

    def matrix(self, weight: Tensor, generator: torch.Generator) -> None:
        nn.init.zeros_(weight)
