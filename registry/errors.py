"""What is wrong with a config: all of it at once, each with its place and the remedy."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, cast, get_args

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails


OF_A_TYPE = re.compile(
    r"(constrained-|literal\[|function-|lax-or-strict|nullable)|(int|float|str|bool|none)$"
)
"""The last step of an error's place where it names a type and no key."""


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
        cause: The error that a part raised, where it was not ours.
    """

    key: str
    rule: str
    value: Any = None
    allowed: tuple[str, ...] = ()
    nearest: str | None = None
    file: str | None = None
    cause: Exception | None = field(default=None, compare=False, repr=False)

    def under(self, prefix: str, file: str | None = None) -> "Problem":
        """The same problem, seen from further up."""
        key = ".".join(part for part in (prefix, self.key) if part)
        return replace(self, key=key, file=self.file or file)

    def __str__(self) -> str:
        place = self.key or "config"
        place = f"{self.file}: {place}" if self.file else place
        hint = f"; did you mean {self.nearest!r}?" if self.nearest else "." * bool(self.allowed)
        allowed = f" Allowed: {', '.join(self.allowed)}." if self.allowed else ""
        return f"{place}: {self.rule}{hint}{allowed}"


class ConfigError(ValueError):
    """A config breaks its rules; `problems` holds every one of them."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: list[Problem] = []
        for problem in problems:
            if problem not in self.problems:
                self.problems.append(problem)
        many = f"{len(self.problems)} problems:\n  " if len(self.problems) > 1 else ""
        super().__init__(many + "\n  ".join(map(str, self.problems)))


def unknown_key(key: str, value: Any, allowed: Iterable[str]) -> Problem:
    """A key that nobody reads."""
    names = tuple(sorted(allowed))
    last = key.rsplit(".", 1)[-1]
    near = next(iter(nearest(last, names)), None)
    return Problem(key, f"unknown key {last!r}", value, names or ("nothing",), near)


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
            found.append(Problem(key, "this key is required"))
        else:
            rule = str(cause) if cause else f"{_lower(detail['msg'])}; got {detail['input']!r}"
            found.append(Problem(key, rule, detail["input"], nearest=_meant(detail)))
    return found


def _joined(details: "Iterable[ErrorDetails]") -> "list[ErrorDetails]":
    """Each error once: what a value of several types fails in each of them is one problem.

    Pydantic tells these apart by a last step of the place that is no key.
    """
    joined: list[ErrorDetails] = []
    for detail in details:
        detail["msg"], place = _plainly(detail["msg"]), detail["loc"]
        if not place or not OF_A_TYPE.match(str(place[-1])):
            joined.append(detail)
        elif joined and joined[-1]["loc"] == place[:-1]:
            also = detail["msg"].removeprefix("Input should be ")
            detail["msg"] = f"{joined[-1]['msg']}, or {also}"
            joined[-1] = {**detail, "loc": place[:-1]}
        else:
            joined.append({**detail, "loc": place[:-1]})
    return joined


def _plainly(message: str) -> str:
    """What pydantic says of Python's types, said of what a config holds."""
    message = message.replace("a valid tuple", "a list")
    return re.sub(r"a valid dictionary( or instance of \w+)?", "a mapping", message)


def _meant(detail: "ErrorDetails") -> str | None:
    """The nearest of the words that may stand here."""
    if detail["type"] != "literal_error":
        return None
    words = re.findall(r"'([^']*)'", str(detail.get("ctx", {}).get("expected")))
    return next(iter(nearest(str(detail["input"]), words)), None)


def _fields_at(model: "type[BaseModel]", place: list[str]) -> list[str]:
    for step in place:
        if step.isdecimal() and step not in model.model_fields:
            continue  # an item of a list: its model was found with the list
        known = model.model_fields.get(step)
        options: list[Any] = [known.annotation, *get_args(known.annotation)] if known else []
        inner = [one for one in options if hasattr(one, "model_fields")]
        if not inner:
            return []
        model = inner[0]
    return list(model.model_fields)


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]


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


def nearest(name: str, known: Iterable[str], count: int = 1, cutoff: float = 0.5) -> list[str]:
    """At most so many of the known names, the likest first.

    Args:
        name: What came.
        known: What would be right.
        count: How many are told at most.
        cutoff: How alike they are at least, from 0 to 1.
    """
    return get_close_matches(name, sorted(known), n=count, cutoff=cutoff)


class UnknownNameError(LookupError):
    """No class of this kind has this name."""

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        self.kind, self.name, self.known = kind, name, known
        self.nearest = nearest(name, known, count=3)
        hint = " or ".join(repr(near) for near in self.nearest)
        hint = f"; did you mean {hint}?" if hint else "."
        super().__init__(f"no {kind} is named {name!r}{hint} Known: {', '.join(known)}")


class DuplicateNameError(ValueError):
    """Two different classes of one kind claim the same name."""
