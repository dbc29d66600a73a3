import torch
from jaxtyping import Int
from torch import Tensor

from variants.masks._cells import Allowed, Cells, Device, Sizes, a_tensor
from variants.masks.mask import Mask


class Documents(Mask):
    """Several documents packed into one sequence: a query may attend within its own document.

    `ids` has shape (batch, token), or (1, token) for all rows; tokens of one document share an id.
    Positions are counted from the start of each document, so a packed document is encoded as it
    would be alone.

    >>> import torch
    >>> print(Documents(torch.tensor([[0, 0, 1, 1]])).draw(4))
    ##..
    ##..
    ..##
    ..##

    Source: Krell et al. 2021 (arXiv:2107.02027).

    Raises:
        TypeError: If the ids are not whole numbers.
        ValueError: If their rank or sizes do not fit.
    """

    name = "documents"
    examples = ({"ids": torch.tensor([[0, 0, 0, 1, 1, 1]])}, {"ids": torch.tensor([[0, 1, 1, 0]])})

    def __init__(self, ids: Int[Tensor, "batch_or_1 tokens"]) -> None:
        if a_tensor("ids", ids).dtype.is_floating_point or ids.dtype == torch.bool:
            raise TypeError(f"document ids are whole numbers; got {ids.dtype}")
        if ids.ndim != 2:
            raise ValueError(f"document ids have shape (batch, token); got {tuple(ids.shape)}")
        self.ids = ids

    def holds(self) -> tuple[int, int]:
        return self.ids.shape[0], 1

    def spans(self) -> tuple[int | None, int | None]:
        return self.ids.shape[1], self.ids.shape[1]

    def __repr__(self) -> str:
        return f"Documents(ids={tuple(self.ids.shape)})"

    def fit(self, sizes: Sizes) -> None:
        rows, tokens = self.ids.shape
        if rows not in (1, sizes.batch) or not tokens == sizes.queries == sizes.keys:
            raise ValueError(
                f"document ids of shape {(rows, tokens)} do not fit a batch of {sizes.batch} with "
                f"{sizes.queries} queries and {sizes.keys} keys"
            )

    def on(self, cells: Cells) -> Allowed:
        ids = self.ids.to(cells.key.device)
        row = cells.batch if ids.shape[0] > 1 else 0
        return ids[row, cells.query] == ids[row, cells.key]

    def starts(
        self, batch: int, keys: int, device: Device = None
    ) -> Int[Tensor, "batch_or_1 keys"]:
        self.fit(Sizes(batch, 1, keys, keys))
        ids = self.ids.to(torch.get_default_device() if device is None else device)
        # Sorting, not comparing each token with each: memory stays linear in the length.
        ordered, order = ids.sort(dim=-1, stable=True)
        index = torch.arange(keys, device=ids.device).expand_as(ids)
        begins = torch.ones_like(ids, dtype=torch.bool)
        begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        place = torch.where(begins, index, 0).cummax(dim=-1).values
        return torch.zeros_like(index).scatter(-1, order, order.gather(-1, place))
