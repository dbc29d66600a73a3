from variants.masks._cells import Allowed, Index, Repeats, whole
from variants.masks.mask import Mask


class Window(Mask):
    """A query may attend to keys at most so many tokens away.

    `Window(radius=2)` reaches 2 tokens to either side, 5 keys in all; `Window(left=2, right=0)`
    reaches 2 to the left and itself. A side that is None is not limited. The numbers count
    neighbours: other libraries' "window size" often counts the query itself.

    >>> print(Window(radius=1).draw(4))
    ##..
    ###.
    .###
    ..##

    Source: Beltagy et al. 2020, section 3.1 (arXiv:2004.05150).

    Raises:
        ValueError: If neither radius nor a side is given, both are, or one is negative.
    """

    name = "window"
    examples = ({"radius": 2}, {"left": 1, "right": 2})

    def __init__(
        self, radius: int | None = None, left: int | None = None, right: int | None = None
    ) -> None:
        if (radius is None) == (left is None and right is None):
            raise ValueError(
                "a window has either a radius or sides (left, right); "
                f"got radius={radius}, left={left}, right={right}"
            )
        sides = {"radius": radius, "left": left, "right": right}
        reach = {side: None if n is None else whole(side, n, 0) for side, n in sides.items()}
        self.left, self.right = (
            reach[side if radius is None else "radius"] for side in ("left", "right")
        )

    @property
    def sees_later(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Does it reach to the right?"""
        return self.right != 0

    def repeats(self) -> Repeats:
        return Repeats(reach=max(self.left or 0, self.right or 0))

    def allows(self, batch: Index, head: Index, query: Index, key: Index) -> Allowed:
        allowed = key == key
        if self.left is not None:
            allowed = allowed & (query - key <= self.left)
        if self.right is not None:
            allowed = allowed & (key - query <= self.right)
        return allowed
