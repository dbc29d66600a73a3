from variants.masks._cells import Allowed, Index, Repeats, whole
from variants.masks.mask import Mask


class Dilated(Mask):
    """A query may attend to keys whose distance is a multiple of `rate`.

    `Dilated(2) & Window(radius=4)` is a dilated sliding window.

    >>> print(Dilated(2).draw(4))
    #.#.
    .#.#
    #.#.
    .#.#

    Source: Beltagy et al. 2020, section 3.1 (arXiv:2004.05150).

    Raises:
        ValueError: If rate is not positive.
    """

    name = "dilated"

    def __init__(self, rate: int) -> None:
        self.rate = whole("rate", rate, 1)

    def repeats(self) -> Repeats:
        return Repeats(rate=self.rate)

    def allows(self, batch: Index, head: Index, query: Index, key: Index) -> Allowed:
        return (query - key) % self.rate == 0
