"""A study in one YAML file: its question, variable and hypotheses, its protocol and budgets."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from registry.errors import ConfigError, Problem, missing, unknown_key
from registry.yaml_file import read_yaml
from studies.experiment.load import Typed, load_draft
from studies.experiment.overlays import ROOTS, Layer, not_a_mapping
from studies.experiment.overrides import merge_settings, without
from studies.experiment.study import Budget, Study

ABOUT = ("name", "question", "about", "source", "variable", "import", "budgets")
NEEDED = ("name", "question")


def read_study(file: Path) -> Study:
    """The study that a YAML file describes.

    Beside the roots of every config (`encoder`, `task`, `training`, `evaluation`, `study` …) the
    file says `name`, `question` and, where they are needed, `variable` (one dotted key or several),
    `about` (text for readers), `source` (who says so, where it is a claim of others), `import`
    (what registers its parts; paths are seen from the file) and `budgets` (names with settings
    that are laid over those of the file).

    Raises:
        ConfigError: If it cannot be read or does not describe a study; every problem is told.
    """
    data = read_yaml(file)
    problems = list(_problems(data))
    if problems:
        told = [problem.under("", str(file)) for problem in problems]
        raise ConfigError([*told, *_deeper(file, data, problems)])
    return _study(file, data)


def _deeper(file: Path, data: Mapping[str, Any], problems: Sequence[Problem]) -> list[Problem]:
    """The unknown names in a file that does not describe a study."""
    sound = without(data, [problem.key.split(".") for problem in problems])
    try:
        study = _study(file, {"name": "?", "question": "?", **sound})
        load_draft(study, Typed())
    except ConfigError as error:
        return [problem for problem in error.problems if problem.code.startswith("unknown")]
    return []


def _study(file: Path, data: Mapping[str, Any]) -> Study:
    """The study of a file whose own keys are right."""
    try:
        budgets = dict(_budgets(file, data))
    except ConfigError as error:
        raise ConfigError(problem.under("", str(file)) for problem in error.problems) from None
    question = data["question"].strip()
    return Study(
        name=data["name"],
        question=question,
        text="\n\n".join([question, *_told(data)]),
        variables=tuple(_texts(data.get("variable", []))),
        budgets=budgets,
        plugins=tuple(
            str(file.parent / spec) if spec.endswith(".py") else spec
            for spec in _texts(data.get("import", []))
        ),
        file=file,
    )


def _problems(data: Mapping[str, Any]) -> Iterator[Problem]:
    for key in data:
        if key not in (*ABOUT, *ROOTS):
            yield _unknown("", key, data[key], (*ABOUT, *ROOTS))
    for key in NEEDED:
        if key not in data:
            yield missing(key)
    for key in ("name", "question", "about", "source"):
        if key in data and not (isinstance(data[key], str) and data[key].strip()):
            yield Problem(key, f"{key} is a text; got {data[key]!r}", data[key])
    if isinstance(data.get("name"), str) and data["name"].strip():
        yield from _name_problems(data["name"])
    for key in ("variable", "import"):
        if not all(isinstance(one, str) for one in _texts(data.get(key, []))):
            yield Problem(key, f"{key} is a text, or a list of texts; got {data[key]!r}", data[key])
    for variable in _texts(data.get("variable", [])):
        steps = variable.split(".") if isinstance(variable, str) else [ROOTS[0]]
        if steps[0] not in ROOTS or "" in steps:
            rule = f"a variable is a dotted key such as encoder.position; got {variable!r}"
            yield Problem("variable", rule, variable)
    yield from _not_mappings("", data)
    yield from _budget_problems(data.get("budgets", {}))


def _name_problems(name: str) -> Iterator[Problem]:
    """Reports and bundles are called after the study."""
    odd = [sign for sign in name if sign in "/\\" or not sign.isprintable()]
    if odd or name.strip()[:1] in (".", "-"):
        rule = (
            "a study has a name that a folder can have: on one line, without slashes, and without "
            f"a dot or a dash at its start; got {name!r}"
        )
        yield Problem("name", rule, name)


def _not_mappings(place: str, data: Mapping[str, Any]) -> Iterator[Problem]:
    for root, value in data.items():
        wrong = not_a_mapping(str(root), value)
        if wrong is not None:
            yield replace(wrong, key=f"{place}{root}")


def _budget_problems(budgets: Any) -> Iterator[Problem]:
    if not isinstance(budgets, Mapping):
        yield Problem("budgets", f"budgets are names with settings; got {budgets!r}", budgets)
        return
    for name, settings in budgets.items():
        if not isinstance(settings, Mapping):
            rule = f"a budget holds settings, such as training.steps; got {settings!r}"
            yield Problem(f"budgets.{name}", rule, settings)
            continue
        yield from _not_mappings(f"budgets.{name}.", settings)
        if not isinstance(settings.get("about", ""), str):
            rule = f"about is a text; got {settings['about']!r}"
            yield Problem(f"budgets.{name}.about", rule, settings["about"])
        for key in settings:
            if key not in ("about", *ROOTS):
                yield _unknown(f"budgets.{name}.", key, settings[key], ("about", *ROOTS))


def _unknown(place: str, key: Any, value: Any, allowed: tuple[str, ...]) -> Problem:
    """A root that nobody reads; one with a dot may be an overlay's way to write it."""
    root, _, rest = str(key).partition(".")
    if rest and root in ROOTS:
        return Problem(f"{place}{key}", f"write {root}: {{{rest}: {value}}}", value, allowed)
    return unknown_key(f"{place}{root}", value, allowed)


def _budgets(file: Path, data: Mapping[str, Any]) -> Iterator[tuple[str, Budget]]:
    written = {root: data[root] for root in ROOTS if root in data}
    own, below = merge_settings({}, written), Layer(written, file)
    budgets = data.get("budgets", {})
    if not {"quick", "file"} & set(budgets):
        yield "file", Budget("what the file says", own, (below,))
    for name, settings in budgets.items():
        changes = {key: value for key, value in settings.items() if key != "about"}
        about = str(settings.get("about", "what the file says, with changes"))
        layers = Layer(changes, file, f"budgets.{name}"), below
        yield str(name), Budget(about, merge_settings(own, changes), layers)


def _told(data: Mapping[str, Any]) -> Iterator[str]:
    if "about" in data:
        yield data["about"].strip()
    if "source" in data:
        yield f"Source: {data['source'].strip()}."


def _texts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]
