"""A normal form for combinations of masks, so that equality follows the laws of the algebra.

A combination is a boolean function of its rules. Its reduced ordered decision diagram is the same
for all combinations that the laws make equal, and shows which rules the answer depends on.
"""

from collections.abc import Callable, Hashable
from functools import reduce
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from variants.masks.mask import Mask

Node = bool | tuple[Any, ...]
"""True, False, or (rule, node where the rule forbids, node where it allows)."""


def form(mask: "Mask") -> Hashable:
    """The normal form: equal for masks that are equal by the laws of the algebra."""
    return _diagram(mask, {})


def needed(mask: "Mask") -> list["Mask"]:
    """The rules that the mask depends on."""
    rules: dict[Hashable, Mask] = {}
    wanted = _rules_of(_diagram(mask, rules))
    return [rule for key, rule in rules.items() if key in wanted]


def _rules_of(node: Node) -> set[Hashable]:
    if isinstance(node, bool):
        return set()
    return {node[0]} | _rules_of(node[1]) | _rules_of(node[2])


def _diagram(mask: "Mask", rules: dict[Hashable, "Mask"]) -> Node:
    from variants.masks.mask import Both, Either, Not

    if isinstance(mask, Not):
        return _negate(_diagram(mask.parts[0], rules))
    if isinstance(mask, Both):
        return reduce(_apply(lambda a, b: a and b), [_diagram(part, rules) for part in mask.parts])
    if isinstance(mask, Either):
        return reduce(_apply(lambda a, b: a or b), [_diagram(part, rules) for part in mask.parts])
    if getattr(mask, "unrestricted", False):
        return True
    # The order of rules must not depend on where they stand in the combination.
    key = (type(mask).__module__, type(mask).__qualname__, mask.key())
    rules.setdefault(key, mask)
    return (key, False, True)


def _negate(node: Node) -> Node:
    return not node if isinstance(node, bool) else (node[0], _negate(node[1]), _negate(node[2]))


def _apply(operate: Callable[[bool, bool], bool]) -> Callable[[Node, Node], Node]:
    seen: dict[tuple[Node, Node], Node] = {}

    def join(left: Node, right: Node) -> Node:
        if isinstance(left, bool) and isinstance(right, bool):
            return operate(left, right)
        if (left, right) not in seen:
            seen[left, right] = branch(left, right)
        return seen[left, right]

    def branch(left: Node, right: Node) -> Node:
        top = min((node[0] for node in (left, right) if not isinstance(node, bool)), key=repr)
        (left_no, left_yes), (right_no, right_yes) = _split(left, top), _split(right, top)
        no, yes = join(left_no, right_no), join(left_yes, right_yes)
        return no if no == yes else (top, no, yes)

    return join


def _split(node: Node, rule: Hashable) -> tuple[Node, Node]:
    if isinstance(node, bool) or node[0] != rule:
        return node, node
    return node[1], node[2]
