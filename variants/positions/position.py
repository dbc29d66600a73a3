"""The contract of position encodings: five seams, all of which do nothing by default."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Literal

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Int
from torch import Tensor

from variants.dims import Dims
from variants.part import Part
from variants.shapes import KeyIndex, Keys, Queries, QueryIndex, Scores, Stream, TokenIndex

Beyond = Literal["extends", "raises", "clamps", "rescales", "resamples"]


class BeyondTableError(ValueError):
    """A position lies beyond the longest one that the encoding was built for."""


INDICES: Mapping[str, tuple[int, ...]] = {
    "place": (0,),
    "embed": (0,),
    "join": (1,),
    "rotate": (2, 3),
    "bias": (0, 1),
    "scores": (2, 3),
}
"""The arguments of each seam that are indices."""


def as_index(index: Tensor) -> TokenIndex:
    """Indices as int64, in which differences and products do not wrap round.

    Raises:
        TypeError: If they are not whole numbers.
    """
    if index.is_floating_point() or index.dtype == torch.bool or index.is_complex():
        raise TypeError(f"positions are whole numbers; got {index.dtype}")
    return index if index.dtype == torch.int64 else index.to(torch.int64)


def _with_indices(seam: Callable[..., Any], places: tuple[int, ...]) -> Callable[..., Any]:
    @wraps(seam)
    def converted(self: Any, *given: Any, **named: Any) -> Any:
        found = [as_index(one) if at in places else one for at, one in enumerate(given)]
        names = {key: as_index(one) if key.endswith("index") else one for key, one in named.items()}
        return seam(self, *found, **names)

    return converted


class Position(Part):
    """How an encoder learns where its tokens are.

    An encoding overrides the seams that it needs; the encoder always calls all five. They see
    position *indices*, never lengths, so left padding, offsets and random positions are not
    special cases. One object serves all layers unless the config sets `position_per_layer`.

    - `place(index, generator)`: the indices to use, once a forward.
    - `embed(index)`: vectors added to the token vectors (`join` says how the two meet).
    - `rotate(q, k, q_index, k_index)`: queries and keys, turned.
    - `bias(q_index, k_index)`: added to the scores, whatever the content.
    - `scores(q, k, q_index, k_index)`: added to the scores, depending on content.

    Scores are q·k/√d_head; `bias` and `scores` are added after that scaling. Phases, slopes and
    buckets are computed in float32 or better whatever the dtype of the model.

    Tokens of one sequence stand at indices that grow by one, from 0 at its first real token;
    padding stands where the nearest real token does, and each packed document counts anew.

    The facts below are true of a class with its default options, and of an object with its own.
    """

    beyond: Beyond = "extends"
    """What happens past the longest trained index."""
    sees_order: bool = True
    """False: permuting the tokens permutes the outputs."""
    sees_direction: bool = True
    """False: reversing the tokens reverses the outputs."""
    distance_only: bool = False
    """True: shifting all indices by a constant changes nothing."""
    causal_only: bool = False
    """True: right under a causal mask alone; a config whose mask shows later keys is refused."""
    longest: int | None = None
    """One more than the largest index that it was built for; None: it was built for any."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.dims = dims

    def __init_subclass__(cls, **options: Any) -> None:
        """Give every seam that a class overrides its indices as int64, whatever integers come."""
        super().__init_subclass__(**options)
        for seam, places in INDICES.items():
            if seam in vars(cls):
                setattr(cls, seam, _with_indices(vars(cls)[seam], places))

    def place(self, index: TokenIndex, generator: torch.Generator | None) -> TokenIndex:
        """The indices at which the tokens of this forward stand."""
        return index

    def embed(self, index: TokenIndex) -> Stream | None:
        """Vectors to add to the token vectors; None adds nothing."""
        return None

    def join(self, x: Stream, index: Int[Tensor, "#batch seq"]) -> Stream:
        """Token vectors with what `embed` says of their places: the sum of the two."""
        added = self.embed(index)
        return x if added is None else x + added.to(x.dtype)

    def rotate(
        self, q: Queries, k: Keys, q_index: QueryIndex, k_index: KeyIndex
    ) -> tuple[Queries, Keys]:
        """Queries and keys with their positions worked in."""
        return q, k

    def bias(self, q_index: QueryIndex, k_index: KeyIndex) -> Scores | None:
        """What is added to the scores whatever the content; None adds nothing."""
        return None

    def scores(self, q: Queries, k: Keys, q_index: QueryIndex, k_index: KeyIndex) -> Scores | None:
        """What is added to the scores depending on content; None adds nothing."""
        return None


def built(inner: Position) -> Position:
    """The encoding inside of another one.

    Raises:
        TypeError: If it is the name of one.
    """
    if isinstance(inner, Position):
        return inner
    raise TypeError(
        f"inner is a position that has been built; got {inner!r} "
        "(registry.build_encoder builds one from its name)"
    )


def relative(q_index: QueryIndex, k_index: KeyIndex) -> Int[Tensor, "#batch query key"]:
    """How far each key stands after each query: negative for keys before it."""
    query = rearrange(q_index, "batch query -> batch query 1")
    return rearrange(k_index, "batch key -> batch 1 key") - query


def ends(index: TokenIndex) -> TokenIndex:
    """The last token of the sequence that each token belongs to: indices grow as far as there."""
    token = torch.arange(index.shape[1], device=index.device)
    goes_on = F.pad(index[:, 1:] > index[:, :-1], (0, 1), value=False)
    end = torch.where(goes_on, index.shape[1], token)
    return end.flip(-1).cummin(dim=-1).values.flip(-1)


def lengths(index: TokenIndex) -> TokenIndex:
    """How many tokens the sequence of each token has, by the index at its end."""
    return index.gather(1, ends(index)) + 1


def reach(index: TokenIndex) -> int:
    """One more than the largest index; 0 of a batch without sequences.

    Reading a value stops a whole-graph capture, so that there it is the length.
    """
    if torch.compiler.is_compiling():
        return index.shape[1]
    return int(index.max()) + 1 if index.numel() else 0
