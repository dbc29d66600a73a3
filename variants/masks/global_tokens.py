from variants.masks._cells import Allowed, Index, Repeats, whole
from variants.masks.mask import Mask


class GlobalTokens(Mask):
    """The first `count` tokens are global: they may attend to every key, every query to them.

    Longformer is a window with global tokens, `Window(radius=256) | GlobalTokens(1)`. Where a mask
    pads on the left, the global tokens are the first real ones.

    >>> from variants.masks import Window
    >>> print((Window(radius=1) | GlobalTokens(1)).draw(5))
    #####
    ###..
    ####.
    #.###
    #..##

    Source: Beltagy et al. 2020, section 3.1 (arXiv:2004.05150).

    Raises:
        ValueError: If count is negative.
    """

    name = "global_tokens"
    counts_real_tokens = True

    def __init__(self, count: int) -> None:
        self.count = whole("count", count, 0)

    def repeats(self) -> Repeats:
        return Repeats(start=self.count)

    def allows(self, batch: Index, head: Index, query: Index, key: Index) -> Allowed:
        queries_are = (query >= 0) & (query < self.count)
        keys_are = (key >= 0) & (key < self.count)
        return queries_are | keys_are
