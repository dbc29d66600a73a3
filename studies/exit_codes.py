"""The exit codes of every command."""

DONE = 0
"""Everything was done; diverged runs and runs that do not apply are results."""
WORK_FAILED = 1
"""A run failed, a promise is broken, or a check found something."""
BAD_INPUT = 2
"""A bad option, config or database, or a refused resume."""
INTERRUPTED = 130
"""Ctrl-C."""
TERMINATED = 143
"""SIGTERM."""
