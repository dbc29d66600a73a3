"""What is wrong with a config: all of it at once, each with its place and the remedy."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails


OF_A_TYPE = re.compile(
    r"(constrained-|literal\[|function-|lax-or-strict|nullable)|(int|float|str|bool|none)$"
)
"""The last step of an error's place where it names a type and no key."""


Code = Literal["invalid", "unknown_key", "unknown_name", "missing", "unreadable"]
"""What kind of problem one is, for whoever handles kinds apart."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a config.

    Args:
        key: Where, as a dotted key; empty for the whole config.
        rule: The rule that is broken.
        value: What came.
        allowed: What would be right, where that can be listed.
        nearest: The nearest valid name, where there is one.
        file: The file that said so, where there is one.
        line: The line of that file, from 1.
        column: The column of that line, from 1.
        code: What kind of problem this is.
        item: Which of the things that the key holds, by its name, such as an arm.
        inside: A dotted key inside that thing, or inside each of them.
        cause: The error that a part raised, where it was not ours.
    """

    key: str
    rule: str
    value: Any = None
    allowed: tuple[str, ...] = ()
    nearest: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    code: Code = "invalid"
    item: str | None = None
    inside: str = ""
    cause: BaseException | None = field(default=None, compare=False, repr=False)

    def under(self, prefix: str, file: str | None = None) -> "Problem":
        """The same problem, seen from further up."""
        key = ".".join(part for part in (prefix, self.key) if part)
        return replace(self, key=key, file=self.file or file)

    def within(self, key: str, item: str | None = None) -> "Problem":
        """The same problem, inside a thing that a key holds, or inside each of them."""
        return replace(self, key=key, item=item, inside=self.place)

    @property
    def place(self) -> str:
        """Key, item and inner key in one text, as messages tell them."""
        if self.item is None:
            return ": ".join(part for part in (self.key, self.inside) if part)
        return ".".join(part for part in (f"{self.key} ({self.item})", self.inside) if part)

    @property
    def steps(self) -> list[str]:
        """The keys that lead to it."""
        item = [] if self.item is None else [self.item]
        return [*filter(None, self.key.split(".")), *item, *filter(None, self.inside.split("."))]

    def located(self) -> "Problem":
        """The same problem with line and column, where the file can be read and says its key."""
        if self.file is None or self.line is not None:
            return self
        line, column = place_in(self.file, self.steps) or (None, None)
        return replace(self, line=line, column=column)

    def __str__(self) -> str:
        numbers = [f":{number}" for number in (self.line, self.column) if number is not None]
        file = f"{self.file}{''.join(numbers)}: " if self.file else ""
        hint = f"; did you mean {self.nearest!r}?" if self.nearest else "." * bool(self.allowed)
        allowed = f" Allowed: {', '.join(self.allowed)}." if self.allowed else ""
        return f"{file}{self.place or 'config'}: {self.rule}{hint}{allowed}"


class ConfigError(ValueError):
    """A config breaks its rules; `problems` holds every one of them."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: list[Problem] = []
        for problem in (problem.located() for problem in problems):
            if problem not in self.problems:
                self.problems.append(problem)
        many = f"{len(self.problems)} problems:\n  " if len(self.problems) > 1 else ""
        super().__init__(many + "\n  ".join(map(str, self.problems)))

    def under(self, prefix: str, file: str | None = None) -> "ConfigError":
        """The same problems, seen from further up."""
        return ConfigError(problem.under(prefix, file) for problem in self.problems)


class UnknownNameError(LookupError):
    """No class of this kind has this name."""

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        self.kind, self.name, self.known = kind, name, known
        self.rule = f"no {kind} is named {name!r}"
        self.nearest = nearest(name, known, count=3)
        hint = " or ".join(repr(near) for near in self.nearest)
        hint = f"; did you mean {hint}?" if hint else "."
        super().__init__(f"{self.rule}{hint} Known: {', '.join(known)}")

    def problem(self, key: str = "") -> Problem:
        """What is wrong with a config that holds this name."""
        near = self.nearest[0] if self.nearest else None
        return Problem(key, self.rule, self.name, tuple(self.known), near, code="unknown_name")


class DuplicateNameError(ValueError):
    """Two different classes of one kind claim the same name."""


def nearest(name: str, known: Iterable[str], count: int = 1, cutoff: float = 0.5) -> list[str]:
    """The known names most like this one, the likest first.

    Args:
        name: The name.
        known: The known names.
        count: How many at most.
        cutoff: How alike they are at least, from 0 to 1.
    """
    return get_close_matches(name, sorted(known), n=count, cutoff=cutoff)


def nearest_one(name: str, known: Iterable[str]) -> str | None:
    """The likest of the known names; None where none is like it."""
    return next(iter(nearest(name, known)), None)


def unknown_key(key: str, value: Any, allowed: Iterable[str]) -> Problem:
    """A key that nobody reads."""
    names = tuple(sorted(allowed))
    last = key.rsplit(".", 1)[-1]
    near = nearest_one(last, names)
    rule = f"unknown key {last!r}"
    return Problem(key, rule, value, names or ("nothing",), near, code="unknown_key")


def missing(key: str) -> Problem:
    """A key that is required."""
    return Problem(key, "this key is required", code="missing")


def problems_of(error: "ValidationError", model: "type[BaseModel]") -> list[Problem]:
    """The problems behind a pydantic error of this model."""
    found: list[Problem] = []
    for detail in _joined(error.errors()):
        place = [str(step) for step in detail["loc"]]
        key, cause = ".".join(place), detail.get("ctx", {}).get("error")
        if isinstance(cause, ConfigError):
            found += [problem.under(key) for problem in cause.problems]
        elif detail["type"] == "extra_forbidden":
            found.append(unknown_key(key, detail["input"], _fields_at(model, place[:-1])))
        elif detail["type"] == "missing":
            found.append(missing(key))
        else:
            message, value, near = detail["msg"], detail["input"], None
            rule = f"{message[:1].lower()}{message[1:]}; got {value!r}"
            if detail["type"] == "literal_error":
                words = re.findall(r"'([^']*)'", str(detail.get("ctx", {}).get("expected")))
                near = nearest_one(str(value), words)
            found.append(Problem(key, str(cause) if cause else rule, value, nearest=near))
    return found


def _joined(details: "Iterable[ErrorDetails]") -> "list[ErrorDetails]":
    """Each error once: what a value of several types fails in each of them is one problem.

    Pydantic tells these apart by a last step of the place that is no key. What it says of Python's
    types is said of what a config holds.
    """
    joined: list[ErrorDetails] = []
    for detail in details:
        message = detail["msg"].replace("a valid tuple", "a list")
        message = re.sub(r"a valid dictionary( or instance of \w+)?", "a mapping", message)
        place = detail["loc"]
        if place and OF_A_TYPE.match(str(place[-1])):
            place = place[:-1]
            if joined and joined[-1]["loc"] == place:
                also = message.removeprefix("Input should be ")
                message = f"{joined.pop()['msg']}, or {also}"
        joined.append({**detail, "msg": message, "loc": place})
    return joined


def _fields_at(model: "type[BaseModel]", place: list[str]) -> list[str]:
    for step in place:
        if step.isdecimal() and step not in model.model_fields:
            continue  # an item of a list: its model was found with the list
        known = model.model_fields.get(step)
        options: list[Any] = [known.annotation, *get_args(known.annotation)] if known else []
        inner = [option for option in options if hasattr(option, "model_fields")]
        if not inner:
            return []
        model = inner[0]
    return list(model.model_fields)


def mapping(value: Any, key: str = "") -> Mapping[str, Any]:
    """The value, if it is a mapping with text keys.

    Raises:
        ConfigError: If it is not.
    """
    if not isinstance(value, Mapping):
        raise ConfigError([Problem(key, f"expected a mapping; got {value!r}", value)])
    found = cast(Mapping[Any, Any], value)
    strange = [name for name in found if not isinstance(name, str)]
    if strange:
        raise ConfigError([Problem(key, f"keys are text; got {strange[0]!r}", strange[0])])
    return found


def place_in(file: str, steps: Sequence[str]) -> tuple[int, int] | None:
    """Line and column of what these keys of a YAML file lead to, or the last of them it says.

    Keys of the file may be dotted. A step may also be an item of a list, by its number or its text.
    """
    path = Path(file)
    if path.suffix not in (".yaml", ".yml") or not steps or not path.is_file():
        return None
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        text = path.read_text(encoding="utf-8")
        root: Any = YAML(pure=True).compose(text)  # pyright: ignore[reportUnknownMemberType]
    except (OSError, UnicodeDecodeError, YAMLError):
        return None
    mark = _deepest(root, list(steps))[1]
    return None if mark is None else (mark.line + 1, mark.column + 1)


def _deepest(node: Any, steps: list[str]) -> tuple[int, Any]:
    """How many of the steps a node says, and the mark of the last one."""
    best: tuple[int, Any] = (0, None)
    for words, mark, value in _entries(node):
        if steps[: len(words)] == words:
            depth, deeper = _deepest(value, steps[len(words) :])
            best = max(best, (depth + len(words), deeper or mark), key=itemgetter(0))
    return best


def _entries(node: Any) -> Iterator[tuple[list[str], Any, Any]]:
    """What a node holds: the steps to it, its mark, and the node itself."""
    if node is None or isinstance(node.value, str):
        return
    for number, entry in enumerate(node.value):
        if isinstance(entry, tuple):  # a mapping holds pairs of a key and a value
            key, value = cast(tuple[Any, Any], entry)
            yield str(key.value).split("."), key.start_mark, value
            continue
        yield [str(number)], entry.start_mark, entry
        if isinstance(entry.value, str):
            yield [entry.value], entry.start_mark, None
        else:
            yield from _entries(entry)
