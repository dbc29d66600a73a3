"""One run, from its settings to its numbers.

`settings` says what a run depends on, `execute` does it: by training a model and scoring it, or by
a function that the config names. `identity` tells the source that the numbers rest on,
`saved_models` come back to a model later.
"""
