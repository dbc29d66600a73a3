"""Make a bundle of a study from what is stored of it."""

import json
import re
import shlex
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from io import StringIO
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML

from store.errors import StoreError
from store.files import sha256_of, writing
from store.maintenance import extract, seal, url_of
from store.results import Results
from studies.bundle.readme import text_of
from studies.experiment.plan import Plan, latest_plan
from studies.report.files import make_report

if TYPE_CHECKING:
    from store.records import Run


MANIFEST, PLAN, FOLDER = "MANIFEST", "plan.json", "sources"


def freeze_study(study: str, storage: str, out: Path) -> str:
    """Bundle a study in a new folder; return the sha256 of its manifest, which identifies it.

    The folder takes its name once it is whole.

    Raises:
        UnknownNameError: If no study of this name is stored.
        StoreError: If the folder holds something, or the study's rows or files cannot be copied.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise StoreError(f"{out} exists and is not empty; choose a new folder")
    with closing(Results(storage)) as results:
        plan = latest_plan(results, study)
    half = out.with_name(f".{out.name}.part")
    shutil.rmtree(half, ignore_errors=True)
    try:
        with writing(out):
            half.mkdir(parents=True)
            _fill(plan, storage, half)
            if out.exists():
                out.rmdir()
            half.rename(out)
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return sha256_of(out / MANIFEST)


def _fill(plan: Plan, storage: str, bundle: Path) -> None:
    study = plan.study
    database = bundle / database_of(study)
    extract(storage, study, database)
    _drop_other_trials(database, study)
    seal(database)
    with closing(Results(url_of(database))) as results:
        runs = results.runs(study=study, phase=None)
        write_configs(runs, bundle)
        write_plan(plan, results, bundle)
        write_environment(runs, results, bundle)
        copied = bring_sources(plan, bundle)
        command = with_copies(plan.command or plan.program, copied)
        plugins = sorted(copied[one] for one in plugin_files(plan) if one in copied)
        text = text_of(plan, database.name, command, results, plugins)
    (bundle / "README.md").write_text(text, encoding="utf-8")
    make_report(plan, url_of(database), bundle / "report", shown=f"sqlite:///{database.name}")
    write_manifest(bundle)


def _drop_other_trials(database: Path, study: str) -> None:
    """Leave the trials of this study's runs alone in Optuna's tables."""
    from studies.execution.trials import Trials

    with closing(Results(url_of(database))) as results:
        runs = results.runs(study=study, phase="tune")
    with closing(Trials(url_of(database))) as trials:
        trials.keep_only(runs)


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


def write_plan(plan: Plan, results: "Results", bundle: Path) -> None:
    """Write the plan of the latest call, and the frozen plans with their hashes."""
    frozen = [
        {
            "hash": one.hash,
            "frozen_at": one.created_at.isoformat(),
            "runs_before": one.runs_before,
            "protocol": one.protocol,
        }
        for one in results.protocols(study=plan.study)
    ]
    known = {"study": plan.study, "database": database_of(plan.study)}
    _write_json(bundle / PLAN, {**known, "plan": plan.to_data(), "frozen": frozen})


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


def bring_sources(plan: Plan, bundle: Path) -> dict[Path, str]:
    """Copy the study's file, its settings and its plug-ins, those that are still there.

    A plug-in below the study's file lies as far below its copy. Returns the copies, as paths seen
    from the bundle, by the file that each is a copy of.
    """
    above = Path(plan.files["study"]).parent if "study" in plan.files else None
    copied: dict[Path, str] = {}
    for file in dict.fromkeys([*map(Path, plan.files.values()), *plugin_files(plan)]):
        if not file.is_file():
            continue
        below = above is not None and file.is_relative_to(above)
        place = file.relative_to(above).as_posix() if above and below else file.name
        while f"{FOLDER}/{place}" in copied.values():
            place = f"_{place}"
        copied[file] = f"{FOLDER}/{place}"
        (bundle / copied[file]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, bundle / copied[file])
    return copied


def plugin_files(plan: Plan) -> list[Path]:
    """The files that register parts of the study."""
    return [Path(one["file"]) for one in plan.plugins if one["spec"].endswith(".py")]


def with_copies(command: str, copied: Mapping[Path, str]) -> str:
    """A command that names the copies in place of the files that it was typed with."""

    def seen(word: str) -> str:
        option, is_option, path = word.rpartition("=")
        typed = PurePath(*(one for one in PurePath(path).parts if one != ".."))
        for file, copy in copied.items():
            if file.match(str(typed)):
                return f"{option}{is_option}{copy}"
        return word

    return shlex.join(map(seen, shlex.split(command)))


def write_manifest(folder: Path) -> None:
    """Name every file of a folder with its hash."""
    lines = [f"{sha256_of(folder / name)}  {name}\n" for name in files_of(folder)]
    (folder / MANIFEST).write_text("".join(lines), encoding="utf-8")


def files_of(folder: Path) -> list[str]:
    """The files of a folder but for the manifest, as paths seen from it."""
    found = (file for file in folder.rglob("*") if file.is_file())
    names = (file.relative_to(folder).as_posix() for file in found)
    return sorted(name for name in names if name != MANIFEST)
