"""Links: which tokens a query looks at, and what becomes of an answer when some are cut.

`cutting` runs an encoder with links cut, `choices` says which ones, `bench` compares the answers,
`effects` does that for a run.
"""
