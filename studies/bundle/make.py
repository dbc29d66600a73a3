"""Make a bundle of a study from what is stored of it."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from store.errors import StoreError
from store.extracting import extract, seal, url_of
from store.results import Results
from studies.bundle.contents import database_of, write_configs, write_environment, write_plan
from studies.bundle.manifest import NAME, digest_of, write_manifest
from studies.bundle.readme import text_of
from studies.bundle.sources import FOLDER, bring_sources
from studies.cli.recall import plan_of, words_behind
from studies.report.make import make_report
from studies.report.provenance import command_of
from studies.report.stored import Stored

if TYPE_CHECKING:
    from studies.experiment.plan import Plan


def freeze_study(study: str, storage: str, out: Path) -> str:
    """Bundle a study in a new folder; return the sha256 of its manifest, which stands for all.

    The folder takes its name once it is whole.

    Raises:
        UnknownNameError: If no study of this name is stored.
        StoreError: If the folder holds something, or the study's rows or files cannot be copied.
        ConfigError: If the words of its latest call do not make a plan any more.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise StoreError(
            f"{out} is there and not empty; name a new folder, so that nothing is lost"
        )
    results = Results(storage)
    try:
        words = words_behind(study, results)
    finally:
        results.close()
    plan = plan_of(study, words)
    half = out.with_name(f".{out.name}.part")
    shutil.rmtree(half, ignore_errors=True)
    try:
        half.mkdir(parents=True)
        _fill(plan, words, storage, half)
        if out.exists():
            out.rmdir()
        half.rename(out)
    except OSError as error:
        raise StoreError(f"{out} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return digest_of(out / NAME)


def _fill(plan: "Plan", words: list[str], storage: str, bundle: Path) -> None:
    study = plan.study.name
    database = bundle / database_of(study)
    extract(storage, study, database)
    _drop_other_trials(database, study)
    seal(database)
    results = Results(url_of(database))
    try:
        runs = results.runs(study=study, phase=None)
        write_configs(runs, bundle)
        write_plan(plan, bring_sources(plan, words, bundle), results, bundle)
        write_environment(runs, results, bundle)
        models = results.models(study=study, phase=None)
        text = text_of(
            plan,
            command_of(Stored(plan, results)),
            results.counts()[study],
            results.protocols(study=study),
            len({model.run_id for model in models}),
            sorted(
                file.relative_to(bundle).as_posix() for file in bundle.glob(f"{FOLDER}/**/*.py")
            ),
        )
    finally:
        results.close()
    (bundle / "README.md").write_text(text, encoding="utf-8")
    make_report(plan, url_of(database), bundle / "report", shown=f"sqlite:///{database.name}")
    write_manifest(bundle)


def _drop_other_trials(database: Path, study: str) -> None:
    """Leave the trials of this study's runs alone in Optuna's tables."""
    from studies.execution.trials import Trials

    results = Results(url_of(database))
    try:
        runs = results.runs(study=study, phase="tune")
    finally:
        results.close()
    trials = Trials(url_of(database))
    try:
        trials.keep_only(runs)
    finally:
        trials.close()
