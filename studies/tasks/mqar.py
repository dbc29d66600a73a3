from typing import Literal, get_args

import torch
from einops import rearrange, repeat
from jaxtyping import Float, Int
from torch import Generator, Tensor

from studies.tasks._shapes import Lookup, Source
from studies.tasks.task import Floors, Tokens, check_choice

Filler = Literal["random", "blank"]
MOST_BAGS, CELLS = 4096, 2**22


class MQAR(Lookup):
    """Give the value of each key that is asked: keys and values come first, in pairs.

    >>> task = MQAR(pairs=2, keys=5, values=6, filler="blank")
    >>> print(task.show([2, 8, 4, 7, 12, 12, 4, 12, 12, 12, 12, 12, 2, 12, 12]))
    tokens   k2 v3 k4 v2 . . k4 . . . . . k2 . .
    targets   .  .  .  . . .  1 . . . . .  2 . .

    Keys are the ids from 1 on, values the next ones, the last id is the blank. The pairs have
    distinct keys and distinct values, uniform among all such. Behind them each key is asked once,
    at one of the slots 0, 2, 4, … of the rest, drawn without replacement, slot g (from 1) with a
    weight of $g^{p-1}$ for a `power` p: most keys are asked soon. With `power: null` the keys are
    asked in random order right behind the pairs, without gaps. The rest is filled with blanks, or
    with random tokens: keys, values and the blank, but none of the keys that are asked, so that
    each key behind the pairs has one answer (the source allows them, unscored). A target is the
    number of the value; all else is unscored.

    Source: Arora et al. 2023 (arXiv:2312.04927), under a causal mask: 8192 ids, lengths and pairs
    (64, 4), (128, 8), (256, 16), (512, 64). The defaults are the 256 ids of their small example.
    """

    name = "mqar"

    def __init__(
        self,
        pairs: int = 4,
        keys: int = 127,
        values: int = 128,
        power: float | None = 0.01,
        filler: Filler = "random",
    ) -> None:
        if not 1 <= pairs <= min(keys, values - 1):
            raise ValueError(
                "mqar has distinct keys and values, and a wrong value to give, so pairs must be "
                f"from 1 to min(keys, values - 1); got pairs={pairs}, keys={keys}, values={values}"
            )
        if power is not None and not 0 < power < float("inf"):
            raise ValueError(f"power must be above 0, or null for no gaps; got power={power}")
        check_choice(self.name, "filler", filler, get_args(Filler))
        self.pairs, self.keys, self.values, self.power = pairs, keys, values, power
        self.filler: Filler = filler
        self.n_symbols = self.blank = keys + values + 1
        self.n_classes, self.first_answer = values, keys + 1
        self.min_length = (3 if power is None else 4) * pairs

    def draw(self, generator: Generator, batch: int, length: int) -> Tokens:
        room = length - 2 * self.pairs
        keys = _distinct(generator, batch, self.pairs, self.keys) + 1
        values = _distinct(generator, batch, self.pairs, self.values) + self.keys + 1
        pairs = rearrange([keys, values], "two batch pair -> batch (pair two)")
        slots = self._slots(generator, batch, room)
        return torch.cat([pairs, self._fillers(generator, keys, room).scatter(1, slots, keys)], 1)

    def source(self, tokens: Tokens) -> Source:
        """The value of each token's key, asked for behind the pairs."""
        length, block = tokens.shape[1], 2 * self.pairs
        keys = rearrange(tokens[:, :block:2], "batch pair -> batch 1 pair")
        same = rearrange(tokens, "batch seq -> batch seq 1") == keys
        behind = torch.arange(length, device=tokens.device) >= block
        return 2 * same.long().argmax(dim=2) + 1, same.any(dim=2) & behind

    def spell(self, token: int) -> str:
        if token == self.blank:
            return "."
        return f"k{token}" if token <= self.keys else f"v{token - self.keys}"

    def measure_floors(self, length: int) -> Floors:
        r"""Of a bag, the values that come more often are more likely to be in a pair.

        Given that value v comes $c_v$ times, a set S of values is that of the pairs with a chance
        proportional to $\prod_{v \in S} c_v$. Each is asked once, so the bag scores the chance of
        the commonest one to be in S, divided by the number of pairs, on average over drawn bags.
        """
        if self.filler == "blank":
            return Floors(1 / self.values, 1 / self.values, 1 / self.pairs)
        fillers = length - 3 * self.pairs
        others = (self.blank - self.pairs - self.values) / (self.blank - self.pairs)
        generator = torch.Generator().manual_seed(0)
        bags = min(MOST_BAGS, CELLS // self.values)
        counts = _distinct(generator, bags, self.values, self.values) < self.pairs
        drawn = torch.rand(bags, fillers, generator=generator)
        which = ((drawn - others) / (1 - others) * self.values).long().clamp(min=0)
        counts = counts.double().scatter_add(1, which, (drawn >= others).double())
        return Floors(
            1 / self.values, 1 / self.values, _commonest_in_pair(counts, self.pairs) / self.pairs
        )

    def _slots(self, generator: Generator, batch: int, room: int) -> Int[Tensor, "batch pair"]:
        if self.power is None:
            return _distinct(generator, batch, self.pairs, self.pairs)
        weights = torch.arange(1, room // 2 + 1, dtype=torch.float64) ** (self.power - 1)
        many = repeat(weights, "slot -> batch slot", batch=batch)
        return 2 * torch.multinomial(many, self.pairs, generator=generator)

    def _fillers(
        self, generator: Generator, keys: Int[Tensor, "batch pair"], room: int
    ) -> Int[Tensor, "batch rest"]:
        if self.filler == "blank":
            return torch.full((len(keys), room), self.blank)
        ids = torch.randint(1, self.blank - self.pairs + 1, (len(keys), room), generator=generator)
        for key in keys.sort(dim=1).values.split(1, dim=1):
            ids = ids + (ids >= key)
        return ids


def _distinct(
    generator: Generator, batch: int, number: int, among: int
) -> Int[Tensor, "batch number"]:
    """Distinct numbers below `among`, in random order."""
    return torch.rand(batch, among, generator=generator).argsort(dim=1)[:, :number]


def _commonest_in_pair(counts: Float[Tensor, "bag value"], pairs: int) -> float:
    r"""The chance of the commonest value to be in a pair: $c\, e_{n-1}(\text{others}) / e_n$.

    The elementary symmetric polynomials e of the counts are summed up value by value.
    """
    ordered = counts.sort(dim=1).values
    ordered = ordered[:, ordered.any(dim=0)]
    sums = torch.zeros(len(counts), pairs + 1, dtype=torch.float64)
    sums[:, 0] = 1
    for count in ordered[:, :-1].split(1, dim=1):
        sums[:, 1:] = sums[:, 1:] + count * sums[:, :-1]
    chosen = ordered[:, -1] * sums[:, pairs - 1]
    return (chosen / (chosen + sums[:, pairs])).mean().item()
