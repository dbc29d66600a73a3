"""A normal form for combinations of masks, so that equality follows the laws of the algebra.

A combination is a boolean function of its rules. Its reduced ordered decision diagram is the same
for all combinations that the laws make equal, and shows which rules the answer depends on.
"""

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from variants.masks.mask import Mask

Node = bool | tuple[Any, ...]
"""True, False, or (number of a rule, node where it forbids, node where it allows)."""


def same(left: "Mask", right: "Mask") -> bool:
    """Do the laws of the algebra make the two combinations equal?"""
    rules: list[Mask] = []
    return _diagram(left, rules) == _diagram(right, rules)


def needed(mask: "Mask") -> list["Mask"]:
    """The rules that the mask depends on."""
    alone, rest, rules = _parted(mask)
    wanted = _rules_of(rest)
    return alone + [rule for number, rule in enumerate(rules) if number in wanted]


def implied(mask: "Mask") -> list["Mask"]:
    """The rules that allow whatever the mask allows; none, if it allows nothing at all."""
    alone, rest, rules = _parted(mask)
    if isinstance(rest, bool):
        return alone
    return alone + [
        rule for number, rule in enumerate(rules) if _both(rest, (number, True, False)) is False
    ]


def rules_where(mask: "Mask", holds: Callable[["Mask"], bool]) -> "list[Mask] | bool":
    """The rules that the mask depends on where those that do not hold allow nothing.

    A truth value, where the mask depends on none there.
    """
    rules: list[Mask] = []
    node = _diagram(mask, rules)
    for number, rule in enumerate(rules):
        if not holds(rule):
            node = _without(node, number)
    return node if isinstance(node, bool) else [rules[number] for number in sorted(_rules_of(node))]


def _without(node: Node, rule: int) -> Node:
    """The diagram where this rule allows nothing."""
    if isinstance(node, bool):
        return node
    no, yes = _without(node[1], rule), _without(node[2], rule)
    return no if node[0] == rule or no == yes else (node[0], no, yes)


def _parted(mask: "Mask") -> tuple[list["Mask"], Node, list["Mask"]]:
    """What `&` joins: rules that nothing else can depend on, and the diagram of the rest.

    A forward asks this. Telling apart two paddings reads their tensors, which waits for a GPU and
    ends a captured graph, so it is left to masks that need it.
    """
    from variants.masks._combinations import Both, Combination

    parts = mask.parts if isinstance(mask, Both) else (mask,)
    kinds = {type(atom) for part in parts if isinstance(part, Combination) for atom in part.atoms()}
    alone: list[Mask] = []
    rules: list[Mask] = []
    rest: Node = True
    for part in parts:
        if isinstance(part, Combination) or part.unrestricted or type(part) in kinds:
            rest = _both(rest, _diagram(part, rules))
        else:
            alone.append(part)
    return [] if rest is False else alone, rest, rules


def _rules_of(node: Node) -> set[int]:
    if isinstance(node, bool):
        return set()
    return {node[0]} | _rules_of(node[1]) | _rules_of(node[2])


def _diagram(mask: "Mask", rules: list["Mask"]) -> Node:
    """The diagram of a mask; `rules` numbers the rules and grows with those not met before."""
    from variants.masks._combinations import Both, Either, Not

    if isinstance(mask, Not):
        return _negate(_diagram(mask.parts[0], rules))
    if isinstance(mask, Both):
        return reduce(_both, [_diagram(part, rules) for part in mask.parts])
    if isinstance(mask, Either):
        return _negate(reduce(_both, [_negate(_diagram(part, rules)) for part in mask.parts]))
    if mask.unrestricted:
        return True
    return (_number(mask, rules), False, True)


def _number(rule: "Mask", rules: list["Mask"]) -> int:
    for number, known in enumerate(rules):
        if rule is known or (type(rule) is type(known) and rule.key() == known.key()):
            return number
    rules.append(rule)
    return len(rules) - 1


def _negate(node: Node) -> Node:
    return not node if isinstance(node, bool) else (node[0], _negate(node[1]), _negate(node[2]))


def _both(left: Node, right: Node) -> Node:
    if isinstance(left, bool):
        return right if left else False
    if isinstance(right, bool):
        return left if right else False
    top = min(left[0], right[0])
    (left_no, left_yes), (right_no, right_yes) = _split(left, top), _split(right, top)
    no, yes = _both(left_no, right_no), _both(left_yes, right_yes)
    return no if no == yes else (top, no, yes)


def _split(node: Node, rule: int) -> tuple[Node, Node]:
    if isinstance(node, bool) or node[0] != rule:
        return node, node
    return node[1], node[2]
