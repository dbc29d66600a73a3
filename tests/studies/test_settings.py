"""The settings of a run."""

from studies.settings import Training


def test_training_lengths_may_be_one_length() -> None:
    assert Training(train_lengths=(4, 4)).train_lengths == (4, 4)
