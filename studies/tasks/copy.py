from typing import Literal, get_args

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Generator, Tensor

from studies.tasks._floors import draw_counts
from studies.tasks._shapes import Lookup, Source, to_one_key
from studies.tasks.task import Floors, Links, Tokens, check_choice, check_least

Longest = Literal["context", "half"]
BAGS = 32_768


class Copy(Lookup):
    """Give the sequence with the blanks behind its marker filled by what stands before it.

    >>> print(Copy().show([1, 7, 2, 10, 11, 11, 11, 11, 11, 11]))
    tokens   1 7 2 > _ _ _  _  _  _
    targets  0 6 1 9 0 6 1 10 10 10

    Every position is scored, also those that only repeat their own token; a blank behind the copy
    stays blank. Symbol 2 is class 1, the marker and the blank are the last two classes. Symbols are
    independent and uniform on the alphabet, and so is their number k, from 1 on: up to T - 2 of T
    tokens ("context", a copy is cut off at the end), or up to T // 2 - 1 ("half", all of it fits).

    Source: the copy task of github.com/peluche/self-attention, digits 1 to 9, T = 10, exact match
    over all positions. Its examples have up to 7 symbols and copies that are cut off; an older
    notebook of it draws them as "half".
    """

    name = "copy"

    def __init__(self, alphabet: int = 9, longest: Longest = "context") -> None:
        check_least(self.name, 2, alphabet=alphabet)
        check_choice(self.name, "longest", longest, get_args(Longest))
        self.alphabet = alphabet
        self.longest: Longest = longest
        self.marker, blank = alphabet + 1, alphabet + 2
        self.n_symbols = self.n_classes = blank
        self.min_length = 3 if longest == "context" else 4

    def draw(self, generator: Generator, batch: int, length: int) -> Tokens:
        number = torch.randint(1, self._most(length) + 1, (batch, 1), generator=generator)
        symbols = torch.randint(1, self.alphabet + 1, (batch, length), generator=generator)
        index = torch.arange(length)
        return symbols.where(index < number, self.marker + (index > number).long())

    def source(self, tokens: Tokens) -> Source:
        """The original of a copy; any other token asks for itself."""
        index = torch.arange(tokens.shape[1], device=tokens.device)
        number = (tokens == self.marker).long().argmax(dim=1, keepdim=True)
        original = index - number - 1
        copied = (original >= 0) & (original < number)
        return original.where(copied, index), torch.ones_like(copied)

    def links(self, tokens: Tokens) -> Links:
        """A given token needs itself, a copy its original, a blank that stays no one token."""
        source, _ = self.source(tokens)
        own = torch.arange(tokens.shape[1], device=tokens.device)
        return to_one_key(source, (source != own) | (tokens <= self.marker))

    def spell(self, token: int) -> str:
        return {self.marker: ">", self.marker + 1: "_"}.get(token) or str(token)

    def measure_floors(self, length: int) -> Floors:
        r"""With k symbols, $r = \min(k, T - k - 1)$ are copied and T - k - 1 - r blanks stay.

        Each class is counted: a symbol comes $(k + r) / A$ times on average, the marker once. At
        index i the marker stands with the chance of k = i, a blank with that of $2 k < i$. In a bag
        a symbol that comes c times among k is the answer to $c (1 + r / k)$ positions.
        """
        most = self._most(length)
        number = torch.arange(1, most + 1, dtype=torch.float64)
        copies, blanks = _parts(number, length)
        constant = torch.stack([(number + copies).mean() / self.alphabet, blanks.mean()])
        index = rearrange(torch.arange(length), "output -> output 1")
        marker, blank = ((number == index), (2 * number < index))
        rest = (~marker & ~blank).double().mean(1) / self.alphabet
        by_index = torch.stack([rest, marker.double().mean(1), blank.double().mean(1)])
        generator = torch.Generator().manual_seed(0)
        number = torch.randint(1, most + 1, (BAGS,), generator=generator).double()
        commonest = draw_counts(generator, number, self.alphabet).amax(dim=1)
        copies, blanks = _parts(number, length)
        bag = torch.maximum(commonest * (1 + copies / number), blanks.clamp(min=1))
        return Floors(
            constant.amax().clamp(min=1).item() / length,
            by_index.amax(dim=0).mean().item(),
            bag.mean().item() / length,
        )

    def _most(self, length: int) -> int:
        return length - 2 if self.longest == "context" else length // 2 - 1


def _parts(
    number: Float[Tensor, " bag"], length: int
) -> tuple[Float[Tensor, " bag"], Float[Tensor, " bag"]]:
    """How many symbols are copied, and how many blanks stay, with so many symbols."""
    room = length - number - 1
    copies = torch.minimum(number, room)
    return copies, room - copies
