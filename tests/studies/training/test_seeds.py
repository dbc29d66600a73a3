"""Randomness follows from study seed, replicate and purpose alone."""

import torch

from studies.seeds import Seeds


def draw(generator: torch.Generator) -> list[int]:
    return torch.randint(2**31, (4,), generator=generator).tolist()


def test_a_stream_is_the_same_whenever_it_is_asked_for() -> None:
    torch.manual_seed(1)
    first = draw(Seeds(0, 3).generator("data", "train", 7))
    torch.manual_seed(2)

    assert draw(Seeds(0, 3).generator("data", "train", 7)) == first


def test_streams_differ_by_study_replicate_purpose_and_index() -> None:
    streams = [
        Seeds(0, 0).generator("data", 1),
        Seeds(1, 0).generator("data", 1),
        Seeds(0, 1).generator("data", 1),
        Seeds(0, 0).generator("order", 1),
        Seeds(0, 0).generator("data", 2),
        Seeds(0, 0).generator("data"),
    ]

    assert len({tuple(draw(stream)) for stream in streams}) == len(streams)


def test_numbers_of_a_purpose_cannot_run_into_one_another() -> None:
    assert Seeds(1, 23).seed("data") != Seeds(12, 3).seed("data")


def test_a_stream_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    draw(Seeds(0, 0).generator("init"))

    assert torch.equal(torch.rand(1), expected)
