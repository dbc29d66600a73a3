import torch

from studies.tasks._floors import chance_within
from studies.tasks._shapes import Lookup, Source
from studies.tasks.task import Floors, Tokens, check_least


class PreviousOccurrence(Lookup):
    """Give the token that followed the last time this token was seen: an induction step.

    >>> print(PreviousOccurrence().show([1, 2, 1, 3, 1, 1]))
    tokens   1 2 1 3 1 1
    targets  . . 1 . 2 0

    Before index 4, symbol 1 was last followed by 3, which is class 2.

    Target i is token j + 1 for the largest j < i with token j = token i; unscored where there is
    no such j. Tokens are independent and uniform on the alphabet.
    """

    name = "previous_occurrence"
    min_length = 2

    def __init__(self, alphabet: int = 8) -> None:
        check_least(self.name, 2, alphabet=alphabet)
        self.alphabet = self.n_symbols = self.n_classes = alphabet

    def source(self, tokens: Tokens) -> Source:
        """The index behind the last occurrence of each token, and whether it was seen before."""
        # A stable sort puts the occurrences of a symbol side by side, in their order.
        ordered, origin = tokens.sort(dim=1, stable=True)
        earlier, later = origin[:, :-1], origin[:, 1:]
        behind = (earlier + 1).clamp(max=tokens.shape[1] - 1)
        again = ordered[:, :-1] == ordered[:, 1:]
        seen = torch.zeros_like(tokens, dtype=torch.bool).scatter(1, later, again)
        return torch.zeros_like(tokens).scatter(1, later, behind), seen

    def measure_floors(self, length: int) -> Floors:
        r"""Given the bag, an answer is symbol s with chance $c_s / T$, over its random orders.

        Two occurrences in a row are neighbours, and the answer is the symbol itself, with chance
        $c_v / T$; otherwise it is a random token of the others. A bag scores T - D positions,
        where D is its number of distinct symbols, so the floor is
        $E[(T - D) \max_s c_s] / (T E[T - D])$.
        """
        size, total = self.alphabet, torch.tensor([length])
        absent = (1 - 1 / size) ** length
        # E[T - D; all counts within m], as a symbol is in the bag unless all tokens are others.
        within = (length - size) * chance_within(total, size, float(length))
        within = within + size * absent * chance_within(total, size - 1, float(length))
        scored = length - size + size * absent
        chance = 1 / size
        return Floors(chance, chance, ((scored - within).sum() / (length * scored)).item())
