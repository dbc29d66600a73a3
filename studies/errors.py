"""Errors of studies that a user can mend."""

from store.errors import StoreError


class WorkerError(RuntimeError):
    """Workers cannot even start."""


class ModelError(StoreError):
    """The model of a run cannot be kept, or cannot be brought back."""
