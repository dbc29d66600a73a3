import torch

from variants.dims import Dims
from variants.part import named
from variants.positions._wrapping import Wrapping
from variants.positions.position import Position, lengths
from variants.shapes import TokenIndex


class RandomOffset(Wrapping):
    """Any encoding at shifted positions: each sequence starts at a random index.

    A sequence of n tokens stands at o, o + 1, …, o + n - 1, with o uniform over all starts that
    end below max_length: so training visits every index, and learns to leave the start aside.
    Each forward, also in evaluation, draws once: sequences of one length share their offset, and a
    sequence has it alone as in any batch. `evaluation.position_draws` averages predictions over
    draws.

    Source: Kiyono et al. 2021, section 3 (arXiv:2109.05644), who draw one offset a sequence and
    none in evaluation; Huang et al. 2024 (arXiv:2410.02140).

    Args:
        inner: The encoding that is used at these positions.
        max_length: Sequences end below this index.

    Raises:
        ValueError: If max_length is not positive or more than the inner encoding was built for, or
            the inner encoding sees distances alone, which offsets do not change.
        BeyondTableError: In a forward, if a sequence is longer than max_length.
    """

    name = "random_offset"

    def __init__(
        self, dims: Dims, inner: Position = named("sinusoidal"), max_length: int = 2048
    ) -> None:
        super().__init__(dims, inner, max_length)
        if inner.distance_only:
            raise ValueError(f"{inner.name} sees distances alone: an offset has no effect on it")
        self.sees_direction = inner.sees_direction

    def place(self, index: TokenIndex, generator: torch.Generator | None) -> TokenIndex:
        self.refuse_beyond(index)
        device = index.device if generator is None else generator.device
        share = torch.rand((), generator=generator, device=device, dtype=torch.float64)
        starts = self.max_length - lengths(index) + 1
        return index + (share.to(index.device) * starts).long()
