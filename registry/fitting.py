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


def _build(kind: str, choice: Choice, dims: "Dims") -> Any:
    import torch

    from variants.norms.layernorm import LayerNorm

    if kind == "mask":
        return build_mask(choice)
    given = (dims, lambda: LayerNorm(dims)) if kind == "norm_placement" else (dims,)
    # Not on torch's meta device: filling a table there imports its compiler, for two seconds.
    with torch.random.fork_rng(devices=[]):  # pyright: ignore[reportUnknownMemberType]
        return build_part(kind, choice, *given)
