"""What a study is: a question, the one thing that its arms differ in, and its budgets."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from studies.settings import Settings


@dataclass(frozen=True)
class Budget:
    """How much a study does. `settings` are nested like the config roots of a study."""

    about: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Study:
    """A study.

    Args:
        name: Under which its runs are stored; the module is `studies.<name>`.
        text: Its module's docstring: question, variable, hypotheses and protocol.
        kind: The kind of part that the arms differ in; an arm is the name of a part of that kind.
        budgets: By name.
        choose: The choice that an arm makes, given its name and the settings.
        remark: A remark that belongs beside every result of an arm, or "".
    """

    name: str
    text: str
    kind: str
    budgets: Mapping[str, Budget]
    choose: Callable[[str, "Settings"], Any] = lambda arm, settings: arm
    remark: Callable[[str, "Settings"], str] = lambda arm, settings: ""
