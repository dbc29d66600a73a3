"""Copy: the symbols before a marker again, behind it."""

from typing import ClassVar, Literal, get_args

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor

from studies.tasks._floors import draw_counts
from studies.tasks.task import Batch, Floors, Task, check_alphabet, check_choice, to_one_key, whole

Longest = Literal["context", "half"]
BAGS = 32_768


class Copy(Task):
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

    Raises:
        ValueError: If the alphabet is below 2, or there is no such longest copy.
    """

    name: ClassVar[str] = "copy"
    readout = "tokens"
    difficulty: ClassVar[tuple[str, ...]] = ("alphabet", "longest", "length")

    def __init__(self, alphabet: int = 9, longest: Longest = "context") -> None:
        check_alphabet(self.name, alphabet)
        check_choice(self.name, "longest", longest, get_args(Longest))
        self.alphabet = alphabet
        self.longest: Longest = longest

    @property
    def marker(self) -> int:
        """The id of the marker; the next one is the blank's."""
        return self.alphabet + 1

    @property
    def vocab_size(self) -> int:
        return self.alphabet + 3

    @property
    def n_classes(self) -> int:
        return self.alphabet + 2

    @property
    def min_length(self) -> int:
        return 3 if self.longest == "context" else 4

    def sample(self, generator: torch.Generator, batch: int, length: int) -> Batch:
        self.check_length(length)
        number = torch.randint(1, self._most(length) + 1, (batch, 1), generator=generator)
        symbols = torch.randint(1, self.alphabet + 1, (batch, length), generator=generator)
        index = torch.arange(length)
        tokens = symbols.where(index < number, self.marker + (index > number).long())
        return whole(tokens, self.solve(tokens))

    def solve(self, tokens: Int[Tensor, "batch seq"]) -> Int[Tensor, "batch seq"]:
        source, copied = self._copied(tokens)
        return tokens.gather(1, source).where(copied, tokens) - 1

    def links(self, tokens: Int[Tensor, "batch seq"]) -> Bool[Tensor, "batch query key"]:
        """A given token needs itself, a copy its original, a blank that stays no one token."""
        source, copied = self._copied(tokens)
        own = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        given = tokens <= self.marker
        return to_one_key(source, copied) | to_one_key(own, given)

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

    def _copied(
        self, tokens: Int[Tensor, "batch seq"]
    ) -> tuple[Int[Tensor, "batch seq"], Bool[Tensor, "batch seq"]]:
        """The index that each position would copy, and whether it does."""
        index = torch.arange(tokens.shape[1], device=tokens.device)
        number = (tokens == self.marker).long().argmax(dim=1, keepdim=True)
        source = index - number - 1
        return source.clamp(min=0), (source >= 0) & (source < number)


def _parts(
    number: Float[Tensor, " bag"], length: int
) -> tuple[Float[Tensor, " bag"], Float[Tensor, " bag"]]:
    """How many symbols are copied, and how many blanks stay, with so many symbols."""
    room = length - number - 1
    copies = torch.minimum(number, room)
    return copies, room - copies
