"""Links: which tokens a query looks at, and what becomes of an answer when some are cut.

`cutting` runs an encoder with links cut, `choices` says which ones, `effects` compares the answers
of a run.
"""
