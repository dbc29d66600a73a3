"""The command line of acceptance: one model in, what was found out."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from studies.acceptance_checks import KEY
from studies.cli.command import errors
from studies.cli.options import (
    DATABASE,
    Assignments,
    Device,
    Plugins,
    Report,
    Storage,
    new_app,
)
from studies.errors import WorkerError
from studies.exit_codes import INTERRUPTED, WORK_FAILED
from studies.experiment.study import Study

if TYPE_CHECKING:
    from store.ledger import Ledger
    from store.records import Claim, Run
    from studies.experiment.draft import Draft
    from studies.experiment.load import Typed
    from studies.experiment.plan import Plan
    from studies.training.settings import RunConfig

LEASE_SECONDS = 3600.0
THREADS = 1


def application(study: Study) -> typer.Typer:
    """The options, and what they do."""
    app = new_app()

    @app.command(help=study.text)
    def main(
        preset: Annotated[
            str, typer.Option(help="A ready architecture: see `python -m registry list presets`.")
        ] = "minimal_encoder",
        config: Annotated[
            Path | None,
            typer.Option(help="YAML file of an encoder, or of settings by root, in its place."),
        ] = None,
        model: Annotated[
            str | None,
            typer.Option(help="A function that builds any nn.Module, as package.module:function."),
        ] = None,
        assignments: Assignments = None,
        plugins: Plugins = None,
        storage: Storage = DATABASE,
        device: Device = "cpu",
        report: Report = None,
        describe: Annotated[
            bool,
            typer.Option("--describe", help="Print the protocol and the checks; do nothing."),
        ] = False,
    ) -> None:
        from studies.experiment.resolve import resolve

        with errors():
            typed = _typed(preset, config, model, plugins or [], assignments or [])
            draft = _drafted(study, typed)
            if describe:
                _describe(draft)
                return
            plan = resolve(draft)
            run = _done(draft, plan, storage, device)
            failed = _tell(run, storage)
            if report is not None:
                from studies.report.files import make_report

                print(f"report: {make_report(plan, storage, report)}")
        if failed:
            raise typer.Exit(WORK_FAILED)

    return app


def _describe(draft: "Draft") -> None:
    """Print what is asked of a model, and with which settings."""
    from studies.acceptance_checks.accept import CHECKS
    from studies.execution import preview

    preview.describe(draft)
    print("\nChecks\n------")
    for check in CHECKS:
        [meaning, *_] = (check.ask.__doc__ or "").splitlines()
        print(f"  {check.layer}: {check.name.replace('_', ' ')}\n    {meaning}")


def _drafted(study: Study, typed: "Typed") -> "Draft":
    """The draft of one run.

    Raises:
        ConfigError: If what was typed breaks a rule.
    """
    from studies.experiment.load import load_draft

    draft = load_draft(study, typed)
    further = _read_at_an_end(draft)
    assignments = [*typed.assignments, *further]
    return load_draft(study, replace(typed, assignments=assignments)) if further else draft


def _typed(
    preset: str,
    config: Path | None,
    model: str | None,
    plugins: Sequence[str],
    assignments: Sequence[str],
) -> "Typed":
    """The options as any study takes them; the file of an encoder is read here."""
    from registry.yaml_file import read_yaml
    from studies.experiment.load import Typed
    from studies.experiment.overlays import ROOTS

    given = {} if config is None else read_yaml(config)
    settings = bool(given) and set(given) <= set(ROOTS)
    encoder = given if given and not settings else {"preset": preset}
    named = f"encoder={json.dumps(encoder)}" if model is None else f"model={model}"
    leading = [] if settings and ("encoder" in given or "model" in given) else [named]
    return Typed(
        config=config if settings else None,
        assignments=[*leading, *assignments],
        plugins=plugins,
    )


def _read_at_an_end(draft: "Draft") -> list[str]:
    """The settings by which a causal encoder sees its whole input, and any gives one answer."""
    from registry.choices import build_mask

    config = draft.config(draft.cells()[0])
    if config.encoder is None or config.task is None or "answer_at" not in config.task.options():
        return []
    ahead = build_mask(config.encoder.mask).looks_ahead()
    told = [] if ahead else ["task.answer_at=appended"]
    place = "first" if ahead else "last"
    per_token = config.encoder.readout.name == "tokens"
    return [*told, f"encoder.readout={place}"] if per_token else told


def _done(draft: "Draft", plan: "Plan", storage: str, device: str) -> "Run":
    """Do the run in this process, anew if it was done before, and store it."""
    from store.ledger import Ledger
    from studies.execution.worker import this_process
    from studies.training.execute import device_named

    chosen: Any = device_named(device)
    ledger = Ledger.create(storage)
    ids = _planned(plan, ledger, chosen)
    claim = ledger.claim(this_process(), ids, LEASE_SECONDS)
    if claim is None:
        raise WorkerError("another process is checking this model; wait for it to end")
    _finish(claim, draft.config(plan.cells()[0]), ledger, chosen)
    [run] = ledger.runs(ids)
    ledger.close()
    return run


def _planned(plan: "Plan", ledger: "Ledger", device: str) -> list[int]:
    """Plan the run, new or not, with the source and the environment of now."""
    from store.provenance import environment_facts, git_facts
    from store.records import FINISHED
    from studies.execution.worker import is_alive
    from studies.training.execute import device_facts

    ledger.describe_study(plan.study, plan.text)
    ledger.keep_plan(plan.study, plan.to_data())
    number = ledger.environment(
        environment_facts({"torch": device_facts(device), "threads": THREADS})
    )
    noted = {"git": git_facts(Path(__file__).parent), "device": device, "command": sys.argv[1:]}
    [cell] = plan.cells()
    planned = [
        replace(run, environment_id=number, provenance={**noted, **run.provenance})
        for run in plan.confirming(cell, plan[cell].tries[0].setting)
    ]
    ids = ledger.plan(planned)
    ledger.recover(ids, is_alive)
    ledger.reset(ids, FINISHED)
    return ledger.plan(planned)


def _finish(claim: "Claim", config: "RunConfig", ledger: "Ledger", device: str) -> None:
    """Do a claimed run and store its outcome; building the model may fail.

    Raises:
        WorkerError: If the model cannot be built.
    """
    import torch

    from registry.build import threads
    from studies.training.execute import execute
    from studies.training.outcome import Outcome

    try:
        with threads(THREADS):
            outcome = execute(config, claim.run.seed, torch.device(device), _counting())
    except KeyboardInterrupt:
        ledger.release(claim)
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:  # whatever building the model raises is the result of the run
        reason = f"building the model failed: {type(error).__name__}: {error}"
        ledger.finish(claim, **Outcome("failed", reason).columns())
        raise WorkerError(reason) from error
    ledger.finish(claim, **outcome.columns())


def _counting() -> Callable[[], None]:
    """Shows training steps where somebody watches, since wide models take minutes."""
    steps = count(1)

    def step() -> None:
        number = next(steps)
        if number % 10 == 0 and sys.stderr.isatty():
            print(f"\r{number} training steps", end="\r", file=sys.stderr, flush=True)

    return step


def _tell(run: "Run", storage: str) -> bool:
    """Print what was found; did something fail?"""
    findings: list[Mapping[str, Any]] = run.provenance[KEY]
    signs = {"passed": "✓", "failed": "✗", "not applicable": "–"}
    layer = ""
    for one in findings:
        if one["layer"] != layer:
            layer = one["layer"]
            print(f"\n{layer}" if one is not findings[0] else layer)
        print(f"  {signs[one['status']]} {one['check'].replace('_', ' ')}: {one['detail']}")
        for suspect in one["suspects"]:
            print(f"      suspect: {suspect}")
    counts = {status: sum(one["status"] == status for one in findings) for status in signs}
    told = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    print(f"\n{told}; run {run.id} in {storage}")
    return counts["failed"] > 0
