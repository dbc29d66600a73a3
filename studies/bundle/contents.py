"""What a bundle says in data: configs, frozen plan, environment."""

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML

from studies.experiment.plan import Plan

if TYPE_CHECKING:
    from store.records import Run
    from store.results import Results

PLAN = "plan.json"


def write_configs(runs: Sequence["Run"], bundle: Path) -> None:
    """Write each resolved config once, with the runs that have it."""
    groups: dict[tuple[str, str, str, str], list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.task, run.arm, run.phase, run.config_hash].append(run)
    for (task, arm, phase, digest), own in sorted(groups.items()):
        folder = bundle / "configs" / as_name(task) / as_name(arm)
        folder.mkdir(parents=True, exist_ok=True)
        seeds = ", ".join(str(run.seed) for run in own)
        ids = ", ".join(str(run.id) for run in own)
        text = StringIO()
        yaml = YAML(typ="safe", pure=True)
        yaml.default_flow_style = False
        yaml.dump(own[0].config, text)
        head = f"# {task}, {arm}, {phase}: seeds {seeds}; runs {ids}\n"
        file = folder / f"{phase}-{digest[:8]}.yaml"
        file.write_text(head + text.getvalue(), encoding="utf-8")


def write_plan(plan: Plan, words: Sequence[str], results: "Results", bundle: Path) -> None:
    """Write the frozen plans with their hashes, and the words that make the plan from here."""
    frozen = [
        {
            "hash": one.hash,
            "frozen_at": one.created_at.isoformat(),
            "runs_before": one.runs_before,
            "protocol": one.protocol,
        }
        for one in results.protocols(study=plan.study.name)
    ]
    known = {"study": plan.study.name, "database": database_of(plan.study.name)}
    _write_json(bundle / PLAN, {**known, "words": list(words), "frozen": frozen})


def write_environment(runs: Sequence["Run"], results: "Results", bundle: Path) -> None:
    """Write the machines, packages, commits and plug-ins behind the runs."""
    numbers = sorted({run.environment_id for run in runs if run.environment_id is not None})
    _write_json(
        bundle / "environment.json",
        {
            "environments": {number: results.environment(number) for number in numbers},
            "commits": _distinct(run.provenance.get("git") for run in runs),
            "plugins": _distinct(
                plugin for run in runs for plugin in run.provenance.get("plugins", [])
            ),
        },
    )


def _distinct(found: Any) -> list[Any]:
    known = {json.dumps(one, sort_keys=True): one for one in found if one}
    return [known[key] for key in sorted(known)]


def database_of(study: str) -> str:
    """The name of the database in the bundle of a study."""
    return f"{as_name(study)}.db"


def as_name(text: str) -> str:
    """A label as the name of a file or folder."""
    return re.sub(r"[^\w.-]+", "_", text).strip("_.") or "unnamed"


def _write_json(file: Path, data: Any) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False, sort_keys=True, allow_nan=False)
    file.write_text(text + "\n", encoding="utf-8")
