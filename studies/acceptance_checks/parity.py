"""Parity: the same outputs and mask meaning as torch's own layer, where a config has one."""

import torch
from einops import rearrange
from jaxtyping import Bool
from torch import Tensor, nn

from studies.acceptance_checks.check import Check, NotApplicableError, Told, insist
from studies.acceptance_checks.counterpart import counterpart, why_none
from studies.acceptance_checks.structure import ours
from studies.acceptance_checks.subject import Subject
from variants.encoder import Encoder
from variants.masks import Padding

HIDDEN = 3
"""So many tokens at the end are padding."""


def outputs_are_those_of_the_layer_of_torch(subject: Subject) -> Told:
    """`nn.TransformerEncoderLayer` with the same weights, in float64."""
    encoder = _doubled(subject)
    x, _ = _inputs(subject, encoder)
    with torch.no_grad():
        found, expected = encoder(x).hidden, _theirs(encoder, x, None)
    off = (found - expected).abs().max().item()
    insist(off < 1e-8, f"states differ from torch's by up to {off:.2g}")
    return Told(f"within {off:.1g}", {"parity_error": off})


def a_mask_hides_what_it_hides_in_torch(subject: Subject) -> Told:
    """Padded tokens change nothing, real ones do; and outputs are torch's, where there are any."""
    encoder = _doubled(subject, exactly=False)
    x, keep = _inputs(subject, encoder)
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(1)).to(x)
    real = rearrange(keep, "batch seq -> batch seq 1")
    with torch.no_grad():
        whole = encoder(x, mask=Padding(keep=keep)).hidden
        hidden = encoder(torch.where(real, x, noise), mask=Padding(keep=keep)).hidden
        seen = encoder(torch.where(real, noise, x), mask=Padding(keep=keep)).hidden
    leak = (whole - hidden).abs()[keep].max().item()
    insist(leak < 1e-9, f"tokens that the mask hides change states by up to {leak:.2g}")
    insist(
        (whole - seen).abs()[keep].max().item() > 1e-9, "tokens that the mask shows change nothing"
    )
    if why_none(encoder):
        return Told("hidden tokens change nothing, seen ones do")
    with torch.no_grad():
        off = (whole - _theirs(encoder, x, keep)).abs()[keep].max().item()
    insist(off < 1e-8, f"with padding, states differ from torch's by up to {off:.2g}")
    return Told(f"hidden tokens change nothing; torch's states within {off:.1g}")


def _doubled(subject: Subject, exactly: bool = True) -> Encoder:
    ours(subject)
    encoder = subject.changed().double()
    if exactly and why_none(encoder):
        raise NotApplicableError(
            f"torch's layer has no counterpart: {'; '.join(why_none(encoder))}"
        )
    return encoder


def _inputs(subject: Subject, encoder: Encoder) -> tuple[Tensor, Bool[Tensor, "batch seq"]]:
    """Embedded tokens, and which of them are real."""
    batch, seq = 3, max(subject.length, HIDDEN + 2)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(batch, seq, encoder.dims.d_model, generator=generator, dtype=torch.float64)
    keep = torch.ones(batch, seq, dtype=torch.bool)
    keep[:, -HIDDEN:] = False
    return x.to(subject.work.device), keep.to(subject.work.device)


def _theirs(encoder: Encoder, x: Tensor, keep: Bool[Tensor, "batch seq"] | None) -> Tensor:
    """What torch's layers make of the same embedded tokens, positions added."""
    batch, seq, _ = x.shape
    mask = encoder.mask if keep is None else encoder.mask & Padding(keep=keep)
    heads = encoder.dims.n_heads
    allowed = mask.dense(batch, heads, seq, seq, device=x.device).expand(batch, heads, seq, seq)
    allowed = _without_empty_rows(allowed, keep)
    ignored = rearrange(allowed.logical_not(), "batch heads query key -> (batch heads) query key")
    position: nn.Module = encoder.positions[0]
    added = position.embed(mask.positions(batch, seq, x.device))  # type: ignore[operator]
    layers = counterpart(encoder)
    return layers(x if added is None else x + added.to(x), mask=ignored)


def _without_empty_rows(
    allowed: Bool[Tensor, "batch heads query key"], keep: Bool[Tensor, "batch seq"] | None
) -> Bool[Tensor, "batch heads query key"]:
    """A mask whose padded queries, which nobody looks at, see themselves where they see nothing.

    Raises:
        NotApplicableError: If a real query sees nothing: torch's layer makes that nan.
    """
    empty = allowed.any(dim=-1).logical_not()
    real = empty if keep is None else empty & rearrange(keep, "batch query -> batch 1 query")
    if real.any():
        raise NotApplicableError("the mask leaves a query without keys, which torch makes nan")
    itself = torch.eye(allowed.shape[-1], dtype=torch.bool, device=allowed.device)
    return allowed | (rearrange(empty, "batch heads query -> batch heads query 1") & itself)


CHECKS = (
    Check(
        "parity",
        outputs_are_those_of_the_layer_of_torch,
        (
            "heads are split or merged in another order than (heads d_head)",
            "scores are divided by √d_model instead of √d_head, or not at all",
            "norms sit at another place, or have another eps; a final norm too many or too few",
            "GELU in its tanh form against the exact one",
        ),
    ),
    Check(
        "parity",
        a_mask_hides_what_it_hides_in_torch,
        (
            "the mask is inverted: here True means may attend, in nn.MultiheadAttention ignore",
            "the mask is not broadcast over heads, or its axes are (key, query)",
            "padding is masked as queries, not as keys",
        ),
    ),
)
