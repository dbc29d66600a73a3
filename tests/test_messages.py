"""Stored messages: compared by default, stored with one option, dropped when nobody asks."""

from collections.abc import Callable

import pytest

Session = Callable[..., pytest.RunResult]

SAYS = """
import pytest

def refuse(word):
    raise ValueError(f"{word} is refused\\n  twice")

@pytest.mark.parametrize("word", ["a", "b"])
def test_refuses(messages, word):
    with messages.raises(ValueError):
        refuse(word)

def test_says(messages, tmp_path):
    messages("one", hide="n")
    messages(f"in {tmp_path / 'file'} at 0x1f")

def test_is_silent():
    pass
"""
STORED = """\
test_it.py:
  test_refuses[a]:
  - |-
    a is refused
      twice
  test_refuses[b]:
  - |-
    b is refused
      twice
  test_says:
  - o…e
  - in TMP/file at ADDRESS
"""


@pytest.fixture
def session(pytester: pytest.Pytester) -> Session:
    """Calls pytest on a project with one file of tests, with these options."""
    pytester.makeini("[pytest]\nfilterwarnings =\n")
    pytester.makeconftest('pytest_plugins = ["tests.messages"]')
    (pytester.mkdir("tests") / "test_it.py").write_text(SAYS)

    def call(*words: str) -> pytest.RunResult:
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", *words)

    return call


@pytest.fixture
def stored(session: Session, pytester: pytest.Pytester) -> str:
    session("--renew-messages").assert_outcomes(passed=4)
    return (pytester.path / "tests/messages.yaml").read_text()


def edit(pytester: pytest.Pytester, file: str, old: str, new: str) -> None:
    path = pytester.path / "tests" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_what_is_said_is_stored_and_compared(session: Session, stored: str) -> None:
    assert stored == STORED
    session().assert_outcomes(passed=4)


def test_what_is_not_stored_fails_and_says_how_to_store_it(session: Session) -> None:
    shown = session()
    shown.assert_outcomes(passed=1, failed=3)
    shown.stdout.fnmatch_lines(["a is refused", "*--renew-messages tests/test_it.py"])


@pytest.mark.usefixtures("stored")
def test_another_text_fails_with_the_difference(
    session: Session, pytester: pytest.Pytester
) -> None:
    edit(pytester, "messages.yaml", "a is refused", "a is taken")
    shown = session()
    shown.assert_outcomes(passed=3, failed=1)
    shown.stdout.fnmatch_lines(["-a is taken", "+a is refused", "   twice"])


@pytest.mark.usefixtures("stored")
def test_what_is_stored_and_not_said_fails(session: Session, pytester: pytest.Pytester) -> None:
    edit(pytester, "messages.yaml", "  - o…e\n", "  - o…e\n  - in TMP/file at ADDRESS\n")
    edit(pytester, "test_it.py", 'messages("one", hide="n")', 'messages("one", hide="n"), messages')
    session().assert_outcomes(passed=4, errors=1)


def test_renewing_a_part_keeps_the_rest(
    session: Session, stored: str, pytester: pytest.Pytester
) -> None:
    edit(pytester, "test_it.py", "is refused", "is not taken")
    session("--renew-messages", "-k", "test_refuses[a]").assert_outcomes(passed=1, deselected=3)
    now = (pytester.path / "tests/messages.yaml").read_text()
    assert now == stored.replace("a is refused", "a is not taken")


def test_a_test_that_fails_renews_nothing(
    session: Session, stored: str, pytester: pytest.Pytester
) -> None:
    edit(pytester, "test_it.py", "refuse(word)\n\n", 'refuse(word + "!")\n    assert 0\n\n')
    session("--renew-messages").assert_outcomes(passed=2, failed=2)
    assert (pytester.path / "tests/messages.yaml").read_text() == stored


@pytest.mark.usefixtures("stored")
def test_what_nobody_asks_for_is_found_and_dropped(
    session: Session, pytester: pytest.Pytester
) -> None:
    edit(pytester, "test_it.py", "test_says", "test_tells")
    edit(pytester, "messages.yaml", "test_it.py:", "test_gone.py:\n  test_a: [b]\ntest_it.py:")
    session("--renew-messages", "tests/test_it.py::test_tells").assert_outcomes(passed=1)
    assert "test_says" in (pytester.path / "tests/messages.yaml").read_text()
    session("--renew-messages", "-k", "silent").assert_outcomes(passed=1, deselected=3)
    now = (pytester.path / "tests/messages.yaml").read_text()
    assert "test_says" not in now
    assert "test_gone.py" not in now
    session().assert_outcomes(passed=4)
