"""Errors of studies that a user can mend."""

import os
import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from registry.errors import ConfigError, Problem
from store.errors import StoreError

PLACES = 3
"""So many of the innermost places are told with an error, those within torch aside."""
TORCH = f"{os.sep}site-packages{os.sep}torch{os.sep}"


class WorkerError(RuntimeError):
    """Workers cannot even start."""


class FailedRunsError(RuntimeError):
    """Runs of a study failed; the same command retries them."""


class InterruptedStudyError(RuntimeError):
    """A study was stopped before all its runs were done; `exit_code` says by what."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class BrokenModelError(ConfigError):
    """A model raises an error where it should be built, or should answer a batch."""


@contextmanager
def _of_the_model(rule: str, *passing: type[Exception]) -> Iterator[None]:
    """Turn any error but those that pass into a BrokenModelError, of which it is the cause."""
    try:
        yield
    except passing:
        raise
    except (Exception, SystemExit) as error:  # a model that leaves ends its run, not ours
        problem = Problem("model", f"{rule} raised {in_one_line(error)}", cause=error)
        raise BrokenModelError([problem]) from error


def model_answers() -> AbstractContextManager[None]:
    """Turn whatever a model raises into a BrokenModelError."""
    return _of_the_model("a model answers a batch of tokens; this one")


def model_is_built() -> AbstractContextManager[None]:
    """Turn whatever builds a model raises into a BrokenModelError; bad options stay that."""
    return _of_the_model("what builds this model", ConfigError)


def in_one_line(error: BaseException) -> str:
    """What went wrong and where, with the innermost places last."""
    every = traceback.extract_tb(error.__traceback__)
    places = [place for place in every if TORCH not in place.filename] or every
    trail = "; ".join(f"{one.filename}:{one.lineno} in {one.name}" for one in places[-PLACES:])
    return f"{type(error).__name__}: {error} ({trail})"


class ModelError(StoreError):
    """The model of a run cannot be kept, or cannot be brought back."""
