"""Is this encoder right? Checks in four layers, one file a layer, on a model that is built anew.

`check` is what a check is, `subject` what it looks at, `accept` does them all as a run.
"""

KEY = "acceptance"
"""Where a run's provenance keeps what was found, in words."""
