"""Names in Markdown are shown as they are written."""

import pytest

from studies.report.page import Said, escaped


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("t5_bias", "t5_bias"),
        ("_private_", r"\_private\_"),
        ("a|b", r"a\|b"),
        ("<script>x</script>", r"\<script>x\</script>"),
        ("0.5 < 1 and 2 > 1", "0.5 < 1 and 2 > 1"),
        ("`code` *bold* $x$", r"\`code\` \*bold\* \$x\$"),
        ("a\\b", r"a\\b"),
        ("[2, 12]", "[2, 12]"),
        ("[a](b)", r"[a\](b)"),
        ("R&D &lt;", r"R&D \&lt;"),
        ("two\nlines", "two lines"),
        (3, "3"),
        (Said("**meant**"), "**meant**"),
    ],
)
def test_signs_that_markdown_reads_get_a_backslash(name: object, shown: str) -> None:
    assert escaped(name) == shown
