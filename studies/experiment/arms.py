"""Arms: what a study compares, each a name with an overlay over the config that all share."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from registry.errors import ConfigError, Problem, UnknownNameError
from registry.yaml_file import parse_yaml
from studies.experiment.overlays import name_of, nested, read_each, refuse_other_roots

TIMES = " × "


@dataclass(frozen=True)
class Arm:
    """One arm of a study.

    Args:
        name: As it is typed, printed and stored.
        value: What the variable of the study is in this arm, where the arm is a bare value such as
            the name of a part.
        overlay: What the arm changes in the config, where it is not a bare value.
        levels: The level of each factor, where the arm is a cell of a crossed design.
    """

    name: str
    value: Any = None
    overlay: Mapping[str, Any] | None = None
    levels: Mapping[str, str] = field(default_factory=dict[str, str])

    def over(self, variables: Sequence[str]) -> dict[str, Any]:
        """The changes of the arm, under the roots of a config.

        Raises:
            ConfigError: If the arm is a bare value and the study has not exactly one variable.
        """
        if self.overlay is not None:
            return nested(self.overlay)
        if len(variables) != 1:
            told = ", ".join(variables) or "none"
            rule = (
                "a bare arm is a value of the one variable that a study has (variables here: "
                f"{told}); say what it changes, as {{{self.name}: {{encoder.n_layers: 4}}}}"
            )
            raise ConfigError([Problem("study.arms", rule, self.name, item=self.name)])
        return nested({variables[0]: self.value})


def bare(name: str) -> Arm:
    """The arm that is a bare value of the variable, written as in YAML."""
    return Arm(name, value=parse_yaml(name))


def read_arms(given: Any) -> tuple[Arm, ...]:
    """The arms of `study.arms`: bare values, and mappings from names to overlays.

    Raises:
        ConfigError: If it holds anything else, or one arm twice.
    """
    if isinstance(given, Mapping):
        given = [{name: overlay} for name, overlay in given.items()]
    if not isinstance(given, list | tuple):
        rule = f"arms are a list of values, or a mapping from names to overlays; got {given!r}"
        raise ConfigError([Problem("", rule, given)])
    if given == []:
        raise ConfigError([Problem("", "at least one is needed; got none", given)])
    arms = read_each(_arm_of, [one for item in given for one in _apart(item)])
    names = [arm.name for arm in arms]
    odd = [name for name in names if not name.strip() or "\n" in name]
    if odd:
        rule = f"the name of an arm is one line that is not empty; got {odd[0]!r}"
        raise ConfigError([Problem("", rule, odd[0])])
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        rule = f"each is given once; got {twice[0]!r} {names.count(twice[0])} times"
        raise ConfigError([Problem("", rule, twice[0])])
    return tuple(arms)


def _apart(item: Any) -> Iterable[Any]:
    """An item of the list; a mapping holds one arm a key."""
    return [{key: value} for key, value in item.items()] if isinstance(item, Mapping) else [item]


def _arm_of(item: Any) -> Arm:
    if isinstance(item, Arm):
        return item
    if not isinstance(item, Mapping):
        return Arm(str(item), value=item)
    [(name, overlay)] = item.items()
    if overlay is None:
        return bare(str(name))
    refuse_other_roots(overlay, str(name))
    return Arm(str(name), overlay=dict(overlay))


def crossed(factors: Mapping[str, Mapping[str, Any]]) -> tuple[Arm, ...]:
    """The cells of a crossed design, one arm for each combination of levels."""
    if not factors:
        return ()
    arms: list[Arm] = []
    for labels in product(*factors.values()):
        levels = dict(zip(factors, labels, strict=True))
        overlay = nested({key: factors[key][label] for key, label in levels.items()})
        arms.append(Arm(TIMES.join(labels), overlay=overlay, levels=levels))
    return tuple(arms)


def read_factors(given: Any) -> dict[str, dict[str, Any]]:
    """The factors of `study.factors`: each dotted key with its levels, by label.

    Levels are a list of values, or a mapping from labels to values.

    Raises:
        ConfigError: If it holds anything else, or two levels have one label.
    """
    if not isinstance(given, Mapping):
        rule = f"factors map dotted keys to lists of levels; got {given!r}"
        raise ConfigError([Problem("", rule, given)])
    return dict(read_each(_factor_of, given.items()))


def _factor_of(factor: tuple[Any, Any]) -> tuple[str, dict[str, Any]]:
    key, levels = factor
    refuse_other_roots({key: levels}, "")
    if isinstance(levels, Mapping):
        return key, {str(label): value for label, value in levels.items()}
    if not isinstance(levels, list | tuple) or not levels:
        raise ConfigError([Problem(key, f"levels are a list of values; got {levels!r}")])
    labels = [_label(level, levels) for level in levels]
    if len(set(labels)) < len(labels):
        raise ConfigError([Problem(key, f"each level is given once; got {labels}")])
    return key, dict(zip(labels, levels, strict=True))


def _label(level: Any, levels: Sequence[Any]) -> str:
    name = name_of(level)
    if not isinstance(level, Mapping) or [name_of(one) for one in levels].count(name) == 1:
        return str(name)
    options = ", ".join(f"{key}={value}" for key, value in level.items() if key != "name")
    return f"{name}({options})"


def select(declared: Sequence[Arm], names: Sequence[str] | None, bare_too: bool) -> list[Arm]:
    """The arms of these names, in the order given; all where no names are given.

    Args:
        declared: The arms of the study.
        names: Those wanted; `x` or `*` stand for the sign × between levels.
        bare_too: Whether a name that is not declared is a bare value of the variable.

    Raises:
        UnknownNameError: If a name is not declared and cannot be a bare value.
    """
    if names is None:
        return list(declared)
    known = {arm.name: arm for arm in declared}
    found: list[Arm] = []
    for name in names:
        levels = name.replace("*", "×").replace(" x ", " × ").split("×")
        typed = TIMES.join(level.strip() for level in levels)
        if typed in known:
            found.append(known[typed])
        elif bare_too:
            found.append(bare(name))
        else:
            raise UnknownNameError("arm of this study", name, list(known))
    return found
