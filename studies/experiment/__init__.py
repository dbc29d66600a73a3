"""Experiments: arms, claims, and the plan of runs that decides them.

A `study` has a `protocol` per budget. `gathering` puts together what was typed and written, `plan`
makes runs of it, `checking`, `contrasts` and `matching` refuse what could not be trusted,
`tuning` chooses settings, `freezing` fixes the claims before the runs that decide.
"""
