"""Promises: what every part of a kind keeps, one function a promise.

A promise is a function named as a sentence and marked with `@promise`. It takes a `Subject` (a part
with some of its options, and small encoders around it), returns nothing, and raises `Broken` or
`NotApplicable`. A `Table` names the modules whose promises its parts keep.
"""
