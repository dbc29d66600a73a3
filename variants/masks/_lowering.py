"""How a mask becomes the boolean tensors, and the rules, that attention takes."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar, cast

import torch
from einops import rearrange
from jaxtyping import Int
from torch import Tensor

from variants.masks import _normal
from variants.masks._cells import Allowed, Cells, Index, Sizes, Texts, all_keep, checked, drawn

if TYPE_CHECKING:
    from variants.masks.mask import Mask

Rule = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class Lowering:
    """What is the same for every mask: from its rule to tensors of the sizes that are asked for."""

    counts_real_tokens: ClassVar[bool]
    allows: Callable[[Index, Index, Index, Index], Allowed]
    atoms: Callable[[], "Iterator[Mask]"]

    def dense(
        self,
        batch: int,
        heads: int,
        queries: int,
        keys: int,
        device: torch.device | str | None = None,
    ) -> Allowed:
        """The mask as a boolean tensor of the smallest shape that broadcasts to those sizes.

        Raises:
            ValueError: If the mask does not fit the sizes.
            TypeError, ValueError: If a rule of somebody's own answers with something else than a
                boolean for each cell.
        """
        every = torch.arange(queries, device=device)
        return self.rows(every, batch, heads, queries, keys)

    def rows(
        self, rows: Int[Tensor, " rows"], batch: int, heads: int, queries: int, keys: int
    ) -> Allowed:
        """The rows of `dense` for these queries, without building the others."""
        sizes = Sizes(batch, heads, queries, keys)
        for atom in self.atoms():
            atom.fit(sizes)
        device = rows.device
        return self.on(
            Cells(
                sizes,
                batch=rearrange(torch.arange(batch, device=device), "batch -> batch 1 1 1"),
                head=rearrange(torch.arange(heads, device=device), "heads -> 1 heads 1 1"),
                query=rearrange(rows, "query -> 1 1 query 1"),
                key=rearrange(torch.arange(keys, device=device), "key -> 1 1 1 key"),
                texts=self._texts(sizes, device),
            )
        )

    def chunk(
        self,
        part: slice,
        batch: int,
        heads: int,
        queries: int,
        keys: int,
        device: torch.device | str | None = None,
    ) -> Allowed:
        """The rows of `dense` for a slice of the queries, without building the others."""
        every = torch.arange(*part.indices(queries), device=device)
        return self.rows(every, batch, heads, queries, keys)

    def mask_mod(self, queries: int | None = None, keys: int | None = None) -> Rule:
        """The rule for FlexAttention's `create_block_mask`, with the lengths if it needs them.

        Tell that function the batch and heads: where it is told None, it asks about row 0 alone.

        Raises:
            ValueError: If the rule needs the lengths, or holds tensors that fit no such sizes.
        """
        if None in (queries, keys) and any(atom.needs_lengths() for atom in self.atoms()):
            raise ValueError(f"{self!r} depends on the lengths: mask_mod(queries=…, keys=…)")
        sizes = self.sizes(queries, keys)
        for atom in self.atoms():
            atom.fit(sizes)
        texts = self._texts(sizes, torch.get_default_device())
        # FlexAttention counts the arguments in the code of a function, which a decorator hides.
        return lambda batch, head, query, key: self.on(Cells(sizes, batch, head, query, key, texts))

    def sizes(self, queries: int | None, keys: int | None, default: int = 1) -> Sizes:
        """The sizes that the rules here are made for; lengths that none says are the default."""
        atoms = list(self.atoms())
        spans = [(queries, keys), *(atom.spans() for atom in atoms)]
        queries, keys = (
            next((n for n in known if n is not None), None) for known in zip(*spans, strict=True)
        )
        batch, heads = (max(held) for held in zip(*(a.holds() for a in atoms), strict=True))
        default = max(default, *(atom.least_keys() for atom in atoms))
        return Sizes(batch, heads, queries or keys or default, keys or queries or default)

    def on(self, cells: Cells) -> Allowed:
        """The mask at these cells."""
        query, key = cells.query, cells.key
        if self.counts_real_tokens:
            query, key = query - cells.first(), key - cells.first()
        return checked(self, self.allows(cells.batch, cells.head, query, key), cells)

    def draw(self, n: int, batch: int = 0, head: int = 0, keys: int | None = None) -> str:
        """The mask of n queries and as many keys as text: '#' may attend, '.' may not.

        Args:
            n: Queries.
            batch: The batch row to draw.
            head: The head to draw.
            keys: Keys, if not as many as queries.

        >>> from variants.masks import Causal, Window
        >>> print((Causal() & Window(radius=1)).draw(4))
        #...
        ##..
        .##.
        ..##
        """
        held = [(batch + 1, head + 1), *(atom.holds() for atom in self.atoms())]
        batches, heads = (max(sizes) for sizes in zip(*held, strict=True))
        keys = n if keys is None else keys
        cells = self.dense(batches, heads, n, keys).expand(batches, heads, n, keys)
        return drawn(cells[batch, head])

    def _texts(self, sizes: Sizes, device: torch.device) -> Texts | None:
        """Where the texts are, if a rule here counts their tokens and padding tells."""
        if not any(atom.counts_real_tokens for atom in self.atoms()):
            return None
        # Only rules that the answer depends on count: equal masks must give equal tensors.
        needed = _normal.needed(cast("Mask", self))
        keeps = [atom.keep(sizes.batch, sizes.keys, device) for atom in needed]
        keep = all_keep(keeps)
        return None if keep is None else Texts.of(keep)
