"""Does a mask let some query attend to a later key, at whatever length?

The laws of the algebra settle most masks. Else cells are looked at, as many as it takes for every
rule to have shown all that it does: `Mask.repeats` tells.
"""

from math import lcm
from typing import TYPE_CHECKING

import torch
from einops import rearrange

from variants.masks import _normal
from variants.masks._cells import Repeats, Sizes

if TYPE_CHECKING:
    from variants.masks.mask import Mask

AT_ONCE, AT_MOST = 2**20, 2**24
"""Cells that are looked at together, and in all; a mask that takes more counts as looking ahead."""


def looks_ahead(mask: "Mask") -> bool:
    """May some query attend to a later key, where there are as many queries as keys?"""
    rules = _normal.rules_where(mask, lambda rule: rule.sees_later)
    if isinstance(rules, bool):
        return rules
    queries, keys = _horizon([rule.repeats() for rule in rules])
    sizes = mask.sizes(None, None, default=keys)
    if any(rule.spans() != (None, None) for rule in rules):
        return _allows_later(mask, sizes, sizes.queries)
    lengths = {sizes.keys}
    if any(rule.needs_lengths() for rule in rules):
        lengths |= {2**power for power in range(1, sizes.keys.bit_length())}
    return any(
        _allows_later(mask, Sizes(sizes.batch, sizes.heads, length, length), min(queries, length))
        for length in sorted(lengths)
    )


def _horizon(repeats: list[Repeats]) -> tuple[int, int]:
    """How many queries, of how many keys, show every combination of what the rules answer."""
    start, step = max(one.start for one in repeats), lcm(*(one.step for one in repeats))
    reach, rate = max(one.reach for one in repeats), lcm(*(one.rate for one in repeats))
    queries = start + step
    return queries, queries + max(reach, start) + lcm(step, rate) + 1


def _allows_later(mask: "Mask", sizes: Sizes, queries: int) -> bool:
    """Do the first queries see a later key, as far as it is affordable to look?"""
    row = sizes.batch * sizes.heads * sizes.keys
    some, affordable = max(AT_ONCE // row, 1), AT_MOST // row
    for first in range(0, min(queries, affordable), some):
        rows = torch.arange(first, min(first + some, queries))
        allowed = mask.rows(rows, sizes.batch, sizes.heads, sizes.queries, sizes.keys)
        later = torch.arange(sizes.keys) > rearrange(rows, "query -> query 1")
        if bool((allowed & later).any()):
            return True
    return queries > affordable
