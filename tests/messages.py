"""User-facing messages that tests pin: their texts lie in `messages.yaml`, a list for each test.

    def test_an_odd_width_is_refused(messages: Messages) -> None:
        with messages.raises(ConfigError) as caught:
            EncoderConfig(d_model=7)
        assert caught.value.problems[0].key == "d_model"

`messages(text)` compares any other text.  After a message was changed on purpose,
`python -m pytest --renew-messages tests/registry` stores what the tests there say by now, and drops
what no test asks for any more; read the difference in git before committing it.

What differs between machines and calls is stored as a word in capitals: paths, hashes, versions; so
are long lists of names.
"""

import io
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from difflib import unified_diff
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import pytest
from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

Stored = dict[str, dict[str, list[str]]]
"""Texts in the order in which a test asks for them, by file and test."""

Raised = TypeVar("Raised", bound=BaseException)

VARIABLE = {
    re.escape(sys.executable): "PYTHON",
    re.escape(str(Path(__file__).parents[1])): "ROOT",
    rf"{re.escape(tempfile.gettempdir())}/tmp\w{{8}}": "TMP",
    r"\b0x[0-9a-f]+\b": "ADDRESS",
    r"\b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{12,64}\b": "HASH",
    r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?( UTC|Z|\+00:00)?": "TIME",
    r"\b\d{8}T\d{6}Z\b": "TIME",
    r"\bsandbox_[0-9a-f]{32}\?host=\S+": "DATABASE",
    r"\b(process|pid) \d{3,}\b": r"\1 PID",
    r"(?i)\b(python|torch|numpy|optuna|sqlite)( |==)\d+(\.\d+)+(\+\w+)?\b": r"\1\2VERSION",
    r"(errors\.pydantic\.dev)/[\d.]+": r"\1/VERSION",
    # A new part joins such a list, and changes no test.
    r"\b(Known|Allowed): ([\w.-]*\w, ){5,}[\w.-]*\w": r"\1: NAMES",
    r"[ \t]+$": "",
}
"""What differs between machines and calls, and the word that is stored for it."""


class Messages:
    """The messages of one test: those that it says are compared with those that are stored.

    Args:
        request: The test.
        expected: What is stored for it.
        renewing: Whether to keep what is said instead of comparing it.
    """

    def __init__(self, request: pytest.FixtureRequest, expected: list[str], renewing: bool) -> None:
        self.nodeid = request.node.nodeid
        factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
        self.temporary = rf"{re.escape(str(factory.getbasetemp()))}/[\w.-]+"
        self.expected, self.renewing = expected, renewing
        self.said: list[str] = []

    def __call__(self, text: object, hide: str | None = None) -> None:
        """Compare a text with the stored one.

        Args:
            text: The text, or an error.
            hide: A pattern of what else differs from call to call.
        """
        __tracebackhide__ = True
        said = normal(re.sub(self.temporary, "TMP", str(text)))
        said = re.sub(hide, "…", said) if hide else said
        self.said.append(said)
        number = len(self.said)
        if self.renewing or self.expected[number - 1 : number] == [said]:
            return
        if number > len(self.expected):
            self._fail(f"Message {number} of this test is not stored:\n{said}")
        old, new = (one.splitlines() for one in (self.expected[number - 1], said))
        lines = unified_diff(old, new, "stored", "said", lineterm="", n=9)
        self._fail("\n".join([f"Message {number} of this test differs:", *lines]))

    @contextmanager
    def raises(
        self, error: type[Raised] | tuple[type[Raised], ...]
    ) -> Generator[pytest.ExceptionInfo[Raised]]:
        """An error, whose message is compared."""
        __tracebackhide__ = True
        with pytest.raises(error) as caught:
            yield caught
        self(caught.value)

    @contextmanager
    def warns(self, warning: type[Warning]) -> Generator[pytest.WarningsRecorder]:
        """Warnings, whose messages are compared."""
        __tracebackhide__ = True
        with pytest.warns(warning) as caught:
            yield caught
        for one in caught:
            self(one.message)

    def end(self) -> None:
        """Nothing is stored that the test does not say."""
        left = len(self.expected) - len(self.said)
        if left > 0 and not self.renewing:
            self._fail(f"Messages that are stored for this test and not said: {left}")

    def _fail(self, reason: str) -> None:
        __tracebackhide__ = True
        command = f"python -m pytest --renew-messages {self.nodeid.partition('::')[0]}"
        pytest.fail(f"{reason}\n\nIf that is right, store it: {command}", pytrace=False)


def normal(text: str) -> str:
    """The text without what differs between machines and calls."""
    for pattern, word in VARIABLE.items():
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    return text


class MessagesOfSession:
    """What the tests of one call of pytest say; with `--renew-messages` it is stored at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self.folder = config.rootpath / "tests"
        self.file = self.folder / "messages.yaml"
        self.renewing = bool(config.getoption("--renew-messages"))
        self.whole_files = not config.getoption("lf", False) and not any(
            "::" in a for a in config.args
        )
        self.collected: dict[str, set[str]] = defaultdict(set)
        self.passed: set[str] = set()
        self.tests: dict[tuple[str, str], Messages] = {}
        self.done = ""

    @cached_property
    def stored(self) -> Stored:
        if not self.file.exists():
            return {}
        return YAML(typ="safe", pure=True).load(self.file.read_text(encoding="utf-8"))

    def of(self, request: pytest.FixtureRequest) -> Messages:
        file, test = _key(request.node)
        expected = self.stored.get(file, {}).get(test, [])
        return self.tests.setdefault((file, test), Messages(request, expected, self.renewing))

    def outdated(self) -> Iterator[tuple[str, str]]:
        """Stored messages that no test asks for, as far as files were collected."""
        for file, tests in self.stored.items():
            gone = not (self.folder / file).exists()
            if gone or (self.whole_files and file in self.collected):
                asking = self.collected.get(file, set())
                yield from ((file, test) for test in tests if test not in asking)

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        file, test = _key(item)
        asks = "messages" in getattr(item, "fixturenames", ())
        self.collected[file] |= {test} if asks else set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.when == "call" and report.passed:
            self.passed.add(item.nodeid)
        return report

    def pytest_sessionfinish(self) -> None:
        if not self.renewing:
            return
        kept = {file: dict(tests) for file, tests in self.stored.items()}
        dropped = list(self.outdated())
        for file, test in dropped:
            del kept[file][test]
        said = {key: one for key, one in self.tests.items() if one.nodeid in self.passed}
        for (file, test), one in said.items():
            kept.setdefault(file, {})[test] = one.said
        write(self.file, kept)
        changed = sum(one.said != one.expected for one in said.values())
        self.done = f"messages: of {changed} tests renewed, of {len(dropped)} dropped"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.done:
            terminalreporter.write_line(self.done)


def _key(item: pytest.Item) -> tuple[str, str]:
    file, _, test = item.nodeid.partition("::")
    return file.removeprefix("tests/"), test


def write(file: Path, messages: Stored) -> None:
    """Write them in order, lines as lines."""
    ordered = {
        name: {test: list(map(_scalar, texts)) for test, texts in sorted(tests.items()) if texts}
        for name, tests in sorted(messages.items())
    }
    yaml = YAML()
    yaml.width, yaml.default_flow_style = 1_000_000, False
    text = io.StringIO()
    yaml.dump({name: tests for name, tests in ordered.items() if tests}, text)
    file.write_text(text.getvalue(), encoding="utf-8")


def _scalar(text: str) -> str:
    plain = text.replace("\n", "").isprintable() and not text.startswith((" ", "\n"))
    return LiteralScalarString(text) if "\n" in text and plain else text


def pytest_addoption(parser: pytest.Parser) -> None:
    about = "store the messages of the tests that run in tests/messages.yaml"
    parser.addoption("--renew-messages", action="store_true", help=about)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--renew-messages") and config.getoption("numprocesses", None):
        raise pytest.UsageError("--renew-messages works in one process: leave -n away")
    config.pluginmanager.register(MessagesOfSession(config), "messages of session")


def session_messages(config: pytest.Config) -> MessagesOfSession:
    found = config.pluginmanager.get_plugin("messages of session")
    assert isinstance(found, MessagesOfSession)
    return found


@pytest.fixture
def messages(request: pytest.FixtureRequest) -> Iterator[Messages]:
    """Compares messages with those that are stored for the test."""
    session = session_messages(request.config)
    made = session.of(request)
    yield made
    if made.nodeid in session.passed:
        made.end()
