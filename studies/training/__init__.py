"""One run, from its settings to its numbers.

`settings` says what a run depends on, `execute` does it: as `train_and_score` does, or as a
function that the config names. `identity` tells the source that the numbers rest on.
"""
