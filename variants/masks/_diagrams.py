"""Boolean functions of numbered variables, as reduced ordered decision diagrams.

Functions that the laws of boolean algebra make equal have one diagram, which shows the variables
that they depend on.
"""

from typing import Any

Node = bool | tuple[Any, ...]
"""True, False, or (number of a variable, node where it is false, node where it is true)."""


def variable(number: int) -> Node:
    """The function that is this variable."""
    return number, False, True


def variables(node: Node) -> set[int]:
    """The variables that the function depends on."""
    if isinstance(node, bool):
        return set()
    return {node[0]} | variables(node[1]) | variables(node[2])


def negate(node: Node) -> Node:
    """True where the function is false."""
    return not node if isinstance(node, bool) else (node[0], negate(node[1]), negate(node[2]))


def both(left: Node, right: Node) -> Node:
    """True where both functions are."""
    if isinstance(left, bool):
        return right if left else False
    if isinstance(right, bool):
        return left if right else False
    top = min(left[0], right[0])
    (left_no, left_yes), (right_no, right_yes) = _split(left, top), _split(right, top)
    no, yes = both(left_no, right_no), both(left_yes, right_yes)
    return no if no == yes else (top, no, yes)


def without(node: Node, number: int) -> Node:
    """The function where this variable is false."""
    if isinstance(node, bool):
        return node
    no, yes = without(node[1], number), without(node[2], number)
    return no if node[0] == number or no == yes else (node[0], no, yes)


def _split(node: Node, number: int) -> tuple[Node, Node]:
    if isinstance(node, bool) or node[0] != number:
        return node, node
    return node[1], node[2]
