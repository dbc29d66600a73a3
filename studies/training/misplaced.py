"""Keys that stand under the wrong root of a config."""

from dataclasses import replace

from pydantic import BaseModel

from registry.config import EncoderConfig
from registry.errors import Problem


def with_its_place(problem: Problem, settings: type[BaseModel]) -> Problem:
    """A key that nobody reads where it stands, with the root under which it is read."""
    if problem.nearest is not None or not problem.rule.startswith("unknown key "):
        return problem
    last = problem.key.rpartition(".")[2]
    kinds = {root: field.annotation for root, field in settings.model_fields.items()}
    places = [
        f"{root}.{last}"
        for root, kind in {**kinds, "encoder": EncoderConfig}.items()
        if last in getattr(kind, "model_fields", ())
    ]
    return replace(problem, nearest=places[0]) if places else problem
