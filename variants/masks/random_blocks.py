import torch
from torch import Tensor

from variants.masks._cells import Allowed, Cells, Repeats, whole
from variants.masks.mask import Mask

WORD = 0xFFFFFFFF
"""The 32 bits that the draws are made of, so that they are the same on every device."""

GOLDEN = 0x9E3779B9
"""Where counting starts, since 0 mixed is 0."""


class RandomBlocks(Mask):
    """A query may attend to `count` blocks of `size` tokens, drawn for its own block by `seed`.

    The blocks of a text are drawn without replacement, from all of them: the same seed and number
    of blocks always give the same ones, in every process, on every device, in all batch rows and
    heads. Blocks of padding are never drawn: padded texts get what they would get alone. A text of
    at most `count` blocks sees all of them.

    BigBird joins it with a window of blocks and global tokens:

    >>> from variants.masks import Blocks, GlobalTokens
    >>> print((Blocks(1, radius=1) | GlobalTokens(1) | RandomBlocks(1, count=1)).draw(8))
    ########
    ###...#.
    ####....
    #.###...
    ##.###..
    #...###.
    #...####
    #...#.##

    Source: Zaheer et al. 2020, section 2 and appendix D (arXiv:2007.14062), which draws from the
    blocks that the other two leave.

    Raises:
        ValueError: If size or count is not positive, or seed negative.
    """

    name = "random_blocks"
    counts_real_tokens = True

    def __init__(self, size: int, count: int = 3, seed: int = 0) -> None:
        self.size = whole("size", size, 1)
        self.count = whole("count", count, 1)
        self.seed = whole("seed", seed, 0)

    def repeats(self) -> Repeats:
        # It never does; as many blocks as this show that it reaches to either side.
        far = (self.count + 2) * self.size
        return Repeats(start=far, step=self.size, reach=far, rate=self.size)

    def needs_lengths(self) -> bool:
        return True

    def on(self, cells: Cells) -> Allowed:
        query, key, tokens = cells.in_text()
        query, key = query // self.size, key // self.size
        blocks = torch.as_tensor(tokens + self.size - 1, device=key.device) // self.size
        drawn: list[Tensor] = []
        # Floyd's way to draw without replacement: what was drawn before gives way to the last.
        for number in range(self.count):
            last = blocks - self.count + number
            one = self._draw(query, number) % (last + 1).clamp(min=1)
            for other in drawn.copy():
                one = torch.where(one == other, last, one)
            drawn.append(one)
        allowed = (blocks <= self.count) & (key == key)
        for one in drawn:
            allowed = allowed | (key == one)
        return allowed

    def _draw(self, query: Tensor, number: int) -> Tensor:
        """For each block of queries a number of 32 bits, evenly spread."""
        return _mixed(_mixed(_mixed(query + GOLDEN) + self.seed) + number)


def _mixed(bits: Tensor) -> Tensor:
    """Mix 32 bits one to one (a multiplier of 27 bits keeps the products within 64)."""
    bits = bits & WORD
    for _ in range(2):
        bits = ((bits >> 16) ^ bits) * 0x45D9F3B & WORD
    return (bits >> 16) ^ bits
