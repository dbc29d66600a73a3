"""Errors of models: whatever they raise is told with its place, and ends no process of ours."""

import pytest

from studies.errors import BrokenModelError, model_answers, model_is_built


@pytest.mark.parametrize("error", [RuntimeError("no such luck"), SystemExit(3)], ids=repr)
@pytest.mark.parametrize("watched", [model_answers, model_is_built])
def test_whatever_a_model_raises_is_an_error_of_that_model(
    watched: object, error: BaseException
) -> None:
    with pytest.raises(BrokenModelError) as caught, watched():  # type: ignore[operator]
        raise error

    [problem] = caught.value.problems
    assert problem.key == "model"
    assert problem.cause is error


def test_who_stops_a_study_is_not_taken_for_a_model() -> None:
    with pytest.raises(KeyboardInterrupt), model_answers():
        raise KeyboardInterrupt
