"""How much of its input a normalization leaves to be brought back."""

import math

import torch

from studies.measurements.norm_undoing import measure, recovered
from studies.training.outcome import Work
from studies.training.settings import check_run


def work(*lengths: int) -> Work:
    config = check_run(
        {
            "perform": {"name": "studies.measurements.norm_undoing:measure"},
            "training": {"steps": 0},
            "evaluation": {"test_lengths": list(lengths)},
        }
    )
    return Work(config, replicate=0, device=torch.device("cpu"))


def by_length(*lengths: int, **options: object) -> list[float]:
    found = measure(work(*lengths), **options).scores  # type: ignore[arg-type]
    assert [one.length for one in found] == list(lengths)
    return [one.value or math.nan for one in found]


def test_what_is_left_after_the_best_line_is_what_numpy_leaves() -> None:
    """Against numpy's own least squares, channel by channel."""
    import numpy

    tokens = torch.randn(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    normed = tokens.sign() + 0.3 * tokens**2

    left = 0.0
    for x, n in zip(tokens.T.numpy(), normed.T.numpy(), strict=True):
        design = numpy.stack([n, numpy.ones_like(n)], axis=1)
        left += float(numpy.linalg.lstsq(design, x, rcond=None)[1][0])

    assert math.isclose(recovered(tokens, normed), 1 - left / float((tokens**2).sum()))


def test_one_token_can_always_be_brought_back() -> None:
    assert math.isclose(by_length(1)[0], 1.0)


def test_no_norm_leaves_everything() -> None:
    assert all(math.isclose(one, 1.0) for one in by_length(1, 64, norm="none", spread=1.0))


def test_sizes_that_a_norm_took_away_do_not_come_back() -> None:
    r"""For many tokens: RMSNorm of a token is its direction u times √d, and one γ serves all sizes
    s, so the share brought back is $E[s]^2 / E[s^2] = e^{-spread^2}$ in many channels."""
    [found] = by_length(100_000, norm="rmsnorm", spread=0.7, d_model=32)

    # Sizes of normal vectors themselves vary as χ with 32 degrees: E[χ]² / E[χ²].
    chance = 2 / 32 * math.exp(2 * (math.lgamma(16.5) - math.lgamma(16)))
    assert math.isclose(found, math.exp(-(0.7**2)) * chance, abs_tol=0.02)


def test_layernorm_takes_the_mean_as_well() -> None:
    """The mean of d channels is 1/d of a normal token."""
    layer, rms = (by_length(20_000, norm=norm)[0] for norm in ("layernorm", "rmsnorm"))

    assert math.isclose(rms - layer, 1 / 32, abs_tol=0.01)
