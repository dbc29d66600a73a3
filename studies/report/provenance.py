"""Where the numbers of a report come from: machine, code, command, and the papers of the parts."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from studies.design.plan import Plan
from studies.report.references import cited
from studies.report.stored import Stored
from studies.training.settings import RunConfig

MACHINE = ("python", "platform", "cpu", "threads")
"""The facts of an environment that a report names."""


def provenance(stored: Stored, storage: str) -> dict[str, str]:
    """Where and by what the runs were done; several where they differ."""
    cells = stored.confirming.values()
    runs = [run for of_cell in cells for run in of_cell if run.finished_at]
    ended = [run.finished_at for run in runs if run.finished_at]
    facts = [
        stored.results.environment(number)
        for number in sorted({run.environment_id for run in runs if run.environment_id})
    ]
    # Arms differ in their parts, and so in their source: versions are told apart in each by itself.
    versions = max(
        (len({run.code_hash for run in of_cell if run.finished_at}) for of_cell in cells), default=0
    )
    packages = [f"{name} {one}" for each in facts for name, one in each.get("packages", {}).items()]
    told = {
        "database": [storage],
        "confirming runs": [
            f"{len(runs)}, of {versions} version{'s' * (versions != 1)} of the source"
        ],
        "last finished": [f"{max(ended):%Y-%m-%d %H:%M:%S} UTC"] if ended else [],
        "commit": [_commit(run.provenance.get("git") or {}) for run in runs],
        **{key: [str(one[key]) for one in facts if key in one] for key in MACHINE},
        "packages": [", ".join(dict.fromkeys(packages))],
        "CPU hours": [f"{sum(run.cpu_seconds or 0 for run in runs) / 3600:.2f}"],
    }
    return {key: "; ".join(dict.fromkeys(one)) for key, one in told.items() if any(one)}


def _commit(git: Mapping[str, Any]) -> str:
    commit = str(git.get("commit") or "")
    return f"{commit[:12]} with changes" if commit and git.get("dirty") else commit[:12]


def command_of(stored: Stored) -> str:
    """What was typed for the latest of the runs."""
    runs = [run for of_cell in stored.confirming.values() for run in of_cell]
    if not runs:
        return stored.plan.study.program
    words = max(runs, key=lambda run: run.created_at).provenance.get("command", [])
    if stored.plan.study.called and words and not words[0].startswith("-"):
        # One of several that ran in turn is called by its name alone.
        words = [stored.plan.study.name, *words[1:]]
    return f"{stored.plan.study.launcher} {shlex.join(map(str, words))}".rstrip()


def sources(plan: Plan) -> list[str]:
    """The papers that the parts and tasks of the study name."""
    found: dict[str, None] = {}
    for cell in plan.cells():
        for part in _classes(plan.config(cell)):
            found |= dict.fromkeys(cited(part.__doc__ or ""))
    return sorted(found)


def _classes(config: RunConfig) -> Iterable[type]:
    from registry.choices import Choice
    from registry.registry import registry_of

    holders = [("task", config.task)]
    if config.encoder is not None:
        kinds = type(config.encoder).model_fields
        holders += [(kind, getattr(config.encoder, kind)) for kind in kinds]
    for kind, chosen in holders:
        if isinstance(chosen, Choice) and chosen.name.isidentifier():
            yield registry_of(kind)[chosen.name]
