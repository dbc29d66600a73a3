"""What a study asks: its arms, what is claimed about them, and the runs that it takes to tell.

A `study` has a `protocol` per budget. `gathering` puts together what was typed and written, `plan`
makes runs of it, `checking`, `contrasts` and `matching` refuse what could not be trusted,
`tuning` chooses settings, `freezing` fixes the claims before the runs that decide.
"""
