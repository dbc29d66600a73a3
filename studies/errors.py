"""Errors of studies that a user can mend."""


class WorkerError(RuntimeError):
    """Workers cannot even start."""
