import torch
from torch import Generator

from studies.tasks._shapes import Copied, Prompt, Reply, Transcript
from studies.tasks.task import Floors, Symbols


class UniqueCopy(Transcript):
    """Write a string of distinct symbols again, each predicted from what precedes it.

    >>> print(UniqueCopy(alphabet=5).show([3, 1, 5]))
    tokens   < 3 1 5 : 3 1 5
    targets  . . . . 2 0 4 5

    The tokens are a start `<`, T distinct symbols, a separator `:`, the same symbols; the targets
    end with the end of the text, the last class. The symbols are a random sample without
    replacement from the alphabet, which so bounds T. Only a causal mask hides the answers.

    Source: Huang et al. 2024, unique copy (arXiv:2410.02140): an alphabet of 150, the longest
    length. Their position offsets are a matter of the encoding, not of the task.
    """

    name = "unique_copy"
    specials = ("<", ":")

    def __init__(self, alphabet: int = 150) -> None:
        super().__init__(alphabet)
        self.max_length = alphabet

    def draw(self, generator: Generator, batch: int, length: int) -> Symbols:
        return torch.rand(batch, self.alphabet, generator=generator).argsort(dim=1)[:, :length] + 1

    def reply(self, prompt: Prompt) -> Reply:
        return prompt[:, 1:-1]

    def copied(self, length: int) -> Copied:
        return torch.arange(1, length - 1)

    def measure_floors(self, length: int) -> Floors:
        """Each symbol comes at most once, so no guess beats the end; the index knows the end."""
        return self.floors_of(length, of_bag=1.0)
