"""The tensors that parts hand to one another, by the names of their axes.

`#` marks an axis that may also have length 1.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor

Stream = Float[Tensor, "batch seq d_model"]
Pooled = Float[Tensor, "batch d_model"]
States = Float[Tensor, "*any d_model"]
Hidden = Float[Tensor, "*any d_ff"]
Queries = Float[Tensor, "batch heads query d_head"]
"""Also the values that each query has mixed."""
Keys = Float[Tensor, "batch heads key d_head"]
"""Also the values."""
Scores = Float[Tensor, "batch heads query key"]
QueryIndex = Int[Tensor, "#batch query"]
KeyIndex = Int[Tensor, "#batch key"]
TokenIndex = Int[Tensor, "batch seq"]
Real = Bool[Tensor, "batch seq"]
"""True: a token, no padding."""
