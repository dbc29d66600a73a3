import math

import torch
from einops import rearrange, reduce
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from studies.tasks._floors import log_choose, mean_largest_count
from studies.tasks._shapes import Lookup, Source
from studies.tasks.task import Floors, Tokens, check_least, uniform_tokens

NEGLIGIBLE = 1e-15


class NearestMarked(Lookup):
    """Give the symbol of the nearest marked token: near counts, far does not, at any length.

    >>> task = NearestMarked(alphabet=8)
    >>> print(task.show([1, 2 + 8, 3, 1, 4 + 8, 2, 2]))
    tokens   1 2* 3 1 4* 2 2
    targets  1  . 1 3  . 3 3
    >>> print(task.show([2, 1 + 8, 2, 3 + 8, 2]))
    tokens   2 1* 2 3* 2
    targets  0  . .  . 2

    A marked symbol has the token id symbol + alphabet and is written with a star; class 1 is
    symbol 2. Unscored are the marked tokens, and those between two equally near ones.

    Each token is marked with the same probability, its symbol is uniform on the alphabet. A
    sequence without a marked token is unscored.
    """

    name = "nearest_marked"
    min_length = 2

    def __init__(self, alphabet: int = 8, mark_probability: float = 0.15) -> None:
        check_least(self.name, 2, alphabet=alphabet)
        if not 0 < mark_probability < 1:
            raise ValueError(
                "nearest_marked needs marked and unmarked tokens, so mark_probability must lie "
                f"between 0 and 1, both excluded; got mark_probability={mark_probability}; "
                "ask for 0.15, say"
            )
        self.alphabet, self.mark_probability = alphabet, mark_probability
        self.n_symbols, self.n_classes = 2 * alphabet, alphabet
        self.first_answer = alphabet + 1

    def draw(self, generator: Generator, batch: int, length: int) -> Tokens:
        symbols = uniform_tokens(generator, batch, length, self.alphabet)
        marked = torch.rand(batch, length, generator=generator) < self.mark_probability
        return symbols + self.alphabet * marked

    def source(self, tokens: Tokens) -> Source:
        """The nearest marked token; asked for where it is another one, and the only nearest."""
        marked = tokens > self.alphabet
        length = marked.shape[1]
        index = torch.arange(length, device=marked.device)
        before = _last_marked(marked)
        after = length - 1 - _last_marked(marked.flip(1)).flip(1)
        left, right = index - before, after - index
        some = reduce(marked.long(), "batch seq -> batch 1", "max").bool()
        nearest = torch.where(left < right, before, after).clamp(0, length - 1)
        return nearest, some & ~marked & (left != right)

    def spell(self, token: int) -> str:
        return f"{token - self.alphabet}*" if token > self.alphabet else str(token)

    def measure_floors(self, length: int) -> Floors:
        """Given the bag, the answer to any scored position is a random marked token of the bag.

        So the best guess is the commonest marked symbol. Bags count by the number of positions
        that they score.
        """
        chance, p = 1 / self.alphabet, self.mark_probability
        marked = torch.arange(1, length, dtype=torch.float64)
        log_binomial = log_choose(length, marked) + marked * math.log(p)
        binomial = (log_binomial + (length - marked) * math.log1p(-p)).exp()
        likely = binomial > NEGLIGIBLE * binomial.max()
        marked, binomial = marked[likely], binomial[likely]
        share = mean_largest_count(marked.long(), self.alphabet, length * p) / marked
        weight = binomial * _scored_positions(length, marked)
        return Floors(chance, chance, ((weight * share).sum() / weight.sum()).item())


def _last_marked(marked: Bool[Tensor, "batch seq"]) -> Int[Tensor, "batch seq"]:
    """The index of the last marked token up to here; out of reach where there is none."""
    length = marked.shape[1]
    index = torch.arange(length, device=marked.device)
    return torch.where(marked, index, -2 * length).cummax(dim=1).values


def _scored_positions(length: int, marked: Float[Tensor, " bag"]) -> Float[Tensor, " bag"]:
    """How many positions are scored on average: the unmarked ones without those amid a tie.

    A tie at distance d has two marked ends and nothing marked within; length - 2d positions have
    room for it, and the other marked tokens lie anywhere outside.
    """
    gap = rearrange(torch.arange(1, (length + 1) // 2, dtype=torch.float64), "gap -> gap 1")
    log_chance = log_choose(length - 2 * gap - 1, marked - 2) - log_choose(length, marked)
    ties = ((length - 2 * gap) * log_chance.exp()).sum(dim=0)
    return length - marked - ties
