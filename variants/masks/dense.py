import torch
from einops import rearrange
from jaxtyping import Bool
from torch import Tensor

from variants.masks._cells import Allowed, Cells, Sizes, a_tensor
from variants.masks.mask import Mask

SHAPES = {
    2: "query key -> 1 1 query key",
    3: "batch query key -> batch 1 query key",
    4: "batch heads query key -> batch heads query key",
}


class Dense(Mask):
    """A mask given as a boolean tensor, True = may attend.

    Two axes are (query, key); three always (batch, query, key); four (batch or 1, heads or 1,
    query, key). One mask a head is (1, heads, query, key).

    Raises:
        TypeError: If the tensor is not boolean.
        ValueError: If its rank or sizes do not fit.
    """

    name = "dense"
    examples = (
        {"tensor": torch.tensor([[True, False, True], [False, False, False], [True, True, True]])},
        {"tensor": torch.ones(2, 4, 4).tril() > 0},
        {"tensor": torch.ones(2, 2, 4, 4).tril() > 0},
    )

    def __init__(self, tensor: Bool[Tensor, "..."]) -> None:
        if a_tensor("a dense mask", tensor).dtype != torch.bool:
            raise TypeError(
                f"a mask is bool, True = may attend; got {tensor.dtype} "
                "(a float mask is a bias on the scores, a 0/1 mask needs .bool())"
            )
        if tensor.ndim not in SHAPES:
            raise ValueError(
                "a dense mask has shape (query, key), (batch, query, key) or "
                f"(batch, heads, query, key); got {tuple(tensor.shape)}"
            )
        self.tensor = rearrange(tensor, SHAPES[tensor.ndim])

    def holds(self) -> tuple[int, int]:
        return self.tensor.shape[0], self.tensor.shape[1]

    def spans(self) -> tuple[int | None, int | None]:
        return self.tensor.shape[2], self.tensor.shape[3]

    def __repr__(self) -> str:
        return f"Dense({tuple(self.tensor.shape)})"

    def fit(self, sizes: Sizes) -> None:
        batch, heads, queries, keys = self.tensor.shape
        if (
            batch not in (1, sizes.batch)
            or heads not in (1, sizes.heads)
            or (queries, keys) != (sizes.queries, sizes.keys)
        ):
            raise ValueError(
                f"a dense mask of shape {tuple(self.tensor.shape)} does not fit (batch, heads, "
                f"query, key) = {sizes.shape}" + self._meant(sizes)
            )

    def _meant(self, sizes: Sizes) -> str:
        """What such a shape is elsewhere."""
        square = (sizes.queries, sizes.keys)
        elsewhere: dict[tuple[int, ...], str] = {
            (1, 1, sizes.batch, sizes.keys): "of shape (batch, key)? That is Padding(keep=…)",
            (sizes.batch, 1, 1, sizes.keys): "one row for all queries? That is Padding(keep=…)",
            (sizes.batch * sizes.heads, 1, *square): "of batch·heads? That is Mask.from_ignore(…, "
            "heads=…), where True = ignore",
            (sizes.heads, 1, *square): "one a head? That has shape (1, heads, query, key)",
        }
        meant = elsewhere.get(tuple(self.tensor.shape))
        return "" if meant is None else f" ({meant})"

    def on(self, cells: Cells) -> Allowed:
        tensor = self.tensor.to(cells.key.device)
        batch = cells.batch if tensor.shape[0] > 1 else 0
        head = cells.head if tensor.shape[1] > 1 else 0
        return tensor[batch, head, cells.query, cells.key]
