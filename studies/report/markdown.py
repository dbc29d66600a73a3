"""Text that Markdown shows as it is written, whatever signs a name has."""

import re

SIGNS = re.compile(
    r"""[\\`*|~$]            # code, emphasis, cells of a table, formulas
    | <(?=[A-Za-z/!?])        # HTML
    | (?<!\w)_ | _(?!\w)        # emphasis too, but inside of a word
    | \](?=[(\[])              # links
    | &(?=\#?\w+;)             # entities of HTML
    """,
    re.VERBOSE,
)


class Said(str):
    """Markdown that is meant as such."""


def escaped(value: object) -> str:
    """A value on one line, with a backslash before each sign that Markdown would read.

    >>> print(escaped("t5_bias < a|b, _c_ and $x$"))
    t5_bias \\< a\\|b, \\_c\\_ and \\$x\\$
    """
    if isinstance(value, Said):
        return value
    return SIGNS.sub(r"\\\g<0>", " ".join(str(value).split("\n")))
