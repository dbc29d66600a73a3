"""A study as a folder that stands alone, for the appendix of a paper; `--check` verifies it."""
