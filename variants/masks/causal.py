from typing import Literal

from variants.masks._cells import Allowed, Cells, Index, Sizes
from variants.masks.mask import Mask


class Causal(Mask):
    """A query may attend to itself and to what came before it.

    Where there are as many queries as keys nothing else need be said. Where the lengths differ,
    `align` says which query meets which key: "first" sets query 0 beside key 0 (key <= query),
    "last" sets the last query beside the last key, as when a cache holds the earlier keys.

    >>> print(Causal().draw(3))
    #..
    ##.
    ###

    Source: Vaswani et al. 2017, section 3.2.3 (arXiv:1706.03762).

    Raises:
        ValueError: When lowered for different lengths without an `align`; for another `align`.
    """

    name = "causal"
    sees_later = False

    def __init__(self, align: Literal["first", "last"] | None = None) -> None:
        if align not in (None, "first", "last"):
            raise ValueError(f'align is "first", "last" or None; got align={align!r}')
        self.align = align

    def fit(self, sizes: Sizes) -> None:
        if self.align is None and sizes.queries != sizes.keys:
            raise ValueError(
                f"a causal mask over {sizes.queries} queries and {sizes.keys} keys needs an "
                'alignment: Causal(align="first") sets query 0 beside key 0, '
                'Causal(align="last") the last query beside the last key'
            )

    def needs_lengths(self) -> bool:
        return self.align == "last"

    def on(self, cells: Cells) -> Allowed:
        ahead = cells.sizes.keys - cells.sizes.queries if self.align == "last" else 0
        return self.allows(cells.batch, cells.head, cells.query + ahead, cells.key)

    def allows(self, batch: Index, head: Index, query: Index, key: Index) -> Allowed:
        return key <= query
