"""Empty tokens: places without a symbol of their own, at which answers are read."""

from einops import rearrange
from jaxtyping import Int
from torch import Tensor
from torch.nn import functional as F

from studies.tasks._estimates import UNSCORED


def with_empties(
    symbols: Int[Tensor, "batch symbol"], empty: int, before: int = 0, after: int = 0
) -> Int[Tensor, "batch seq"]:
    """The symbols with empty tokens around them."""
    return F.pad(symbols, (before, after), value=empty)


def without_empties(tokens: Int[Tensor, "batch seq"], empty: int) -> Int[Tensor, "batch symbol"]:
    """The symbols in their order, wherever the empty tokens are; each row has equally many."""
    return rearrange(tokens[tokens != empty], "(batch symbol) -> batch symbol", batch=len(tokens))


def at_empties(
    tokens: Int[Tensor, "batch seq"], answers: Int[Tensor, "batch output"], empty: int
) -> Int[Tensor, "batch seq"]:
    """Targets that hold the answers at the empty tokens, in their order."""
    targets = tokens.new_full(tokens.shape, UNSCORED)
    targets[tokens == empty] = rearrange(answers, "batch output -> (batch output)")
    return targets
