from typing import ClassVar

import torch

from variants.masks._cells import Allowed, Index
from variants.masks.mask import Mask


class Full(Mask):
    """Every query may attend to every key: the identity of `&`."""

    name = "full"
    unrestricted: ClassVar[bool] = True

    def allows(self, batch: Index, head: Index, query: Index, key: Index) -> Allowed:
        return torch.ones((1,) * key.ndim, dtype=torch.bool, device=key.device)
