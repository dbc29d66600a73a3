"""Whether parts fit their sizes and one another: each is built once, before anything runs."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from registry.choices import Choice, build_mask, build_part
from registry.problems import ConfigError, Problem

if TYPE_CHECKING:
    from variants.dims import Dims


def misfits(
    chosen: Mapping[str, Choice], dims: "Dims", gradient_checkpointing: bool
) -> Iterator[Problem]:
    """What the parts of a config refuse: options, sizes, or one another."""
    built: dict[str, Any] = {}
    for kind, choice in chosen.items():
        try:
            built[kind] = _build(kind, choice, dims)
        except ConfigError as error:
            yield from (problem.under(kind) for problem in error.problems)
    if {"mask", "position"} <= built.keys():
        yield from _unfit_for_the_future(built["position"], built["mask"], chosen)
    if {"attention", "mask", "position"} <= built.keys():
        try:
            built["attention"].check(built["mask"], built["position"])
        except ValueError as error:
            yield Problem("attention", str(error), str(chosen["attention"]), cause=error)
    if gradient_checkpointing and "norm" in built and built["norm"].spans_tokens:
        rule = (
            "the backward pass computes each block again, which would count every batch twice in "
            f"{chosen['norm'].name}; set it to false, or take another norm"
        )
        yield Problem("gradient_checkpointing", rule, True)


def _unfit_for_the_future(
    position: Any, mask: Any, chosen: Mapping[str, Choice]
) -> Iterator[Problem]:
    """A position that is right for earlier keys alone, under a mask that shows later ones."""
    if not position.causal_only or _is_within_causal(mask):
        return
    rule = (
        f"{chosen['position']} is right for keys up to the query alone, and the mask "
        f"{str(chosen['mask'])!r} lets queries see later ones; set mask: causal, or one within "
        'it such as "causal & window(left=8)" (a mask of the call does not count), or take a '
        "position for both directions"
    )
    yield Problem("position", rule, str(chosen["position"]))


LONGEST = 1024
"""Length up to which cells are looked at, where the algebra does not settle a question."""


def _is_within_causal(mask: Any) -> bool:
    """By the laws of the algebra, or cell by cell: window(left=8, right=0) is a rule of its own."""
    from variants.masks import Causal

    if mask & Causal() == mask:
        return True
    later = (mask & ~Causal()).dense(1, mask.holds()[1], LONGEST, LONGEST)
    return not bool(later.any())


def _build(kind: str, choice: Choice, dims: "Dims") -> Any:
    import torch

    from variants.norms.layernorm import LayerNorm

    if kind == "mask":
        return build_mask(choice)
    given = (dims, lambda: LayerNorm(dims)) if kind == "norm_placement" else (dims,)
    # Not on torch's meta device: filling a table there imports its compiler, for two seconds.
    with torch.random.fork_rng(devices=[]):  # pyright: ignore[reportUnknownMemberType]
        return build_part(kind, choice, *given)
