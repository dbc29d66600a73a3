import torch
from einops import rearrange
from jaxtyping import Float
from torch import Generator, Tensor

from studies.tasks._floors import chance_of_fall
from studies.tasks._shapes import AnswerString, Outputs, stopped
from studies.tasks.task import Floors, Symbols

POP = 3
MOST_BAGS, CELLS = 2**16, 2**22


class StackManipulation(AnswerString):
    """Give the stack that is left, from its top, then a stop: a binary stack under instructions.

    >>> print(StackManipulation().show([1, 2, 2, 1, 5, 3, 3]))
    tokens   0 1 1 0 push1 pop pop _ _ _ _ _ _ _ _
    targets  . . . .     .   .   . 1 1 0 2 . . . .
    >>> print(StackManipulation().show([2, 3, 3]))
    tokens   1 pop pop _ _ _ _
    targets  .   .   . 2 . . .

    The stack comes from its bottom: between 1 and T - 1 symbols, uniform, of T; then come
    instructions, each uniform among pop, push 0, push 1. A pop of an empty stack does nothing.
    Class 2 is the stop; what follows it is unscored. A sequence of one symbol is a stack without
    instructions.

    Source: Delétang et al. 2022, stack manipulation (arXiv:2207.02098).
    """

    name = "stack_manipulation"
    n_symbols, n_classes = 5, 3
    words = ("0", "1", "pop", "push0", "push1")

    def outputs(self, length: int) -> int:
        return length + 1

    def draw(self, generator: Generator, batch: int, length: int) -> Symbols:
        height = torch.randint(1, max(length, 2), (batch, 1), generator=generator)
        stack = torch.randint(1, 3, (batch, length), generator=generator)
        actions = torch.randint(3, 6, (batch, length), generator=generator)
        return torch.where(torch.arange(length) < height, stack, actions)

    def answer(self, symbols: Symbols) -> Outputs:
        batch, length = symbols.shape
        # A pop writes as well, into one place more that nobody reads.
        stack = symbols.new_zeros(batch, length + 1)
        size = symbols.new_zeros(batch, 1)
        for token in symbols.split(1, dim=1):
            pops = token == POP
            value = (token - 1).where(token < POP, token - 4)
            stack.scatter_(1, size.masked_fill(pops, length), value)
            size = torch.where(pops, (size - 1).clamp(min=0), size + 1)
        output = torch.arange(length + 1, device=symbols.device)
        from_top = stack.gather(1, (size - 1 - output).clamp(min=0))
        return stopped(from_top, size)

    def measure_floors(self, length: int) -> Floors:
        r"""Both symbols are equally likely on the stack, so its final size S decides.

        The constant scores $\max(E[S] / 2, 1) / (E[S] + 1)$, the index the sum over j of
        $\max(P(S > j) / 2, P(S = j))$ over the same. Of a bag, all orders of the stack and of the
        instructions are equally likely, and the pushed symbols on the final stack are a random
        share of all pushed ones, so the expected counts are known; they are averaged over bags.
        """
        sizes = _final_sizes(length)
        size = torch.arange(length + 1, dtype=torch.float64)
        scored = (size * sizes).sum() + 1
        above = 1 - sizes.cumsum(0)
        constant = torch.clamp((scored - 1) / 2, min=1) / scored
        index = torch.maximum(above / 2, sizes).sum() / scored
        return Floors(constant.item(), index.item(), max(constant.item(), _of_bags(length)))


def _final_sizes(length: int) -> Float[Tensor, " size"]:
    """The law of the final size: start with 1..T-1 symbols, go up with 2/3 and down with 1/3."""
    law = torch.zeros(length + 1, dtype=torch.float64)
    law[1] = float(length == 1)
    for left in range(length - 1, 0, -1):
        law[length - left] += 1 / (length - 1)
        up = torch.cat([law.new_zeros(1), law[:-1]])
        down = torch.cat([law[:2].sum(0, keepdim=True), law[2:], law.new_zeros(1)])
        law = 2 / 3 * up + 1 / 3 * down
    return law


def _of_bags(length: int) -> float:
    """The score of the best guess from the bag, averaged over drawn bags."""
    generator = torch.Generator().manual_seed(0)
    bags = min(MOST_BAGS, CELLS // length)
    height = torch.randint(1, max(length, 2), (bags,), generator=generator).double()
    pops = torch.binomial(length - height, torch.full_like(height, 1 / 3), generator=generator)
    pushes = length - height - pops
    half = torch.full_like(height, 0.5)
    below, pushed = (torch.binomial(many, half, generator=generator) for many in (height, pushes))
    depth = rearrange(torch.arange(1, length + 1), "depth -> depth 1")
    popped = chance_of_fall(depth, pushes, pops)
    stack_left = ((1 - popped) * (depth <= height)).sum(dim=0)
    ignored = (popped * (depth > height)).sum(dim=0)
    size = height + pushes - pops + ignored
    ones = stack_left * below / height + (size - stack_left) * pushed / pushes.clamp(min=1)
    hits = torch.stack([ones, size - ones, torch.ones_like(size)]).amax(dim=0)
    return (hits.sum() / (size + 1).sum()).item()
