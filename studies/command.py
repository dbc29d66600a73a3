"""The command line that every study shares."""

import signal
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from studies.study import Study

if TYPE_CHECKING:
    from collections.abc import Iterator

    from studies.conduct import Conductor
    from studies.plan import Plan

Words = Annotated[list[str] | None, typer.Option()]
DONE, WORK_FAILED, BAD_INPUT, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143


class Terminated(BaseException):
    """The process was asked to end by SIGTERM."""


def command(study: Study) -> Callable[[], None]:
    """The command of a study."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

    def main(
        budget: Annotated[str, typer.Option(help=_budgets_help(study))] = "quick",
        arms: Annotated[
            str | None, typer.Option(help=f"Names of {study.kind} parts, joined by commas.")
        ] = None,
        seeds: Annotated[int | None, typer.Option(help="Confirming seeds per arm.")] = None,
        workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 2,
        threads: Annotated[int, typer.Option(min=1, help="Threads of each worker.")] = 1,
        storage: Annotated[str, typer.Option(help="Database URL.")] = "sqlite:///sandbox.db",
        config: Annotated[Path | None, typer.Option(help="YAML file with settings.")] = None,
        plugins: Annotated[
            list[str] | None,
            typer.Option(
                "--import", help="Python file or module that registers parts; repeatable."
            ),
        ] = None,
        assignments: Annotated[
            list[str] | None,
            typer.Option("--set", help="A setting, as dotted.key=value (YAML); repeatable."),
        ] = None,
        device: Annotated[
            Literal["cpu", "cuda", "auto"], typer.Option(help="Where to compute.")
        ] = "cpu",
        plan: Annotated[
            bool, typer.Option("--plan", help="Print what would be done; do nothing.")
        ] = False,
        describe: Annotated[
            bool,
            typer.Option("--describe", help="Print question, protocol and settings; do nothing."),
        ] = False,
        rerun: Annotated[
            list[str] | None,
            typer.Option(help="An arm to run again, in place of its results; repeatable."),
        ] = None,
    ) -> None:
        told = {
            "arms": None if arms is None else [arm.strip() for arm in arms.split(",")],
            "seeds": seeds,
        }
        from studies.devices import device_named
        from studies.preview import describe_plan, preview

        with _errors():
            ready = _ready(study, budget, told, config, plugins or [], assignments or [])
            if describe:
                describe_plan(ready)
            elif plan:
                preview(ready, workers)
            else:
                _run(
                    ready,
                    storage,
                    plugins or [],
                    device_named(device),
                    workers,
                    threads,
                    rerun or [],
                )

    main.__doc__ = study.text
    app.command()(main)

    def run() -> None:
        # Everything typed after the module is kept with the runs.
        app(prog_name=f"python -m studies.{study.name}")

    return run


def _budgets_help(study: Study) -> str:
    return "; ".join(f"{name}: {budget.about}" for name, budget in study.budgets.items())


@contextmanager
def _errors() -> "Iterator[None]":
    """Turn errors that a user can mend into lines on standard error and an exit code."""
    from registry.problems import ConfigError
    from registry.table import DuplicateNameError, UnknownNameError
    from store.errors import StoreError
    from studies.conduct import WorkerError

    try:
        yield
    except (ConfigError, StoreError, UnknownNameError, DuplicateNameError) as error:
        _fail(str(error), BAD_INPUT)
    except WorkerError as error:
        _fail(str(error), WORK_FAILED)


def _fail(message: str, code: int) -> None:
    print(f"error: {message}", file=sys.stderr)
    raise typer.Exit(code)


def _ready(
    study: Study,
    budget: str,
    told: dict[str, Any],
    config: Path | None,
    plugins: list[str],
    assignments: list[str],
) -> "Plan":
    """The checked plan of what was typed."""
    from registry.plugins import load
    from registry.table import UnknownNameError
    from studies.plan import Plan
    from studies.settings import gather

    if budget not in study.budgets:
        raise UnknownNameError("budget", budget, list(study.budgets))
    loaded = [load(plugin) for plugin in plugins]
    options = {key: value for key, value in told.items() if value is not None}
    settings = gather(study.budgets[budget].settings, config, assignments, options)
    provenance = {
        "command": sys.argv[1:],
        "budget": budget,
        "plugins": [vars(plugin) for plugin in loaded],
    }
    plan = Plan(study, settings, provenance=provenance)
    plan.check()
    return plan


def _run(
    plan: "Plan",
    storage: str,
    plugins: list[str],
    device: str,
    workers: int,
    threads: int,
    rerun: list[str],
) -> None:
    from dataclasses import replace

    from store.connection import make_engine
    from store.environment import environment_facts, git_facts
    from store.ledger import Ledger
    from studies.conduct import Conductor, job_for
    from studies.devices import device_facts
    from studies.search import Trials

    _refuse_unknown_arms(plan, rerun)
    ledger = Ledger.create(storage)
    ledger.describe_study(plan.study.name, plan.study.text)
    facts = environment_facts({"torch": device_facts(device), "threads": threads})
    here = Path(__file__).parent
    provenance = {**plan.provenance, "git": git_facts(here), "device": device}
    plan = replace(plan, environment_id=ledger.environment(facts), provenance=provenance)
    conductor = Conductor(plan, ledger, Trials(storage))
    conductor.tidy(rerun)
    if conductor.unfinished():
        _conduct(conductor, job_for(storage, plugins, device, threads), workers)
    # A reader refuses a file that was moved away or deleted meanwhile.
    make_engine(storage, readonly=True).dispose()
    for arm, run_ids in conductor.changed().items():
        print(
            f"note: the source of arm {arm} has changed since {len(run_ids)} of its runs (the "
            f"first is {run_ids[0]}); --rerun {arm} does them again",
            file=sys.stderr,
        )
    _print_answer(conductor, storage)


def _refuse_unknown_arms(plan: "Plan", rerun: list[str]) -> None:
    from registry.table import UnknownNameError

    for arm in rerun:
        if arm not in plan.settings.study.arms:
            raise UnknownNameError("arm of this call", arm, list(plan.settings.study.arms))


def _conduct(conductor: "Conductor", job: Any, workers: int) -> None:
    """Do the runs, and say how to go on when stopped."""
    from studies.progress import Display

    def terminate(number: int, frame: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        with Display(conductor.plan) as display:
            conductor.conduct(job, workers, display.show)
    except (KeyboardInterrupt, Terminated) as error:
        finished = sum(
            run.status not in ("planned", "running")
            for runs in conductor.runs().values()
            for run in runs
        )
        print(
            f"stopped: {finished} of {conductor.expected()} runs are stored; "
            "the same command goes on from here",
            file=sys.stderr,
        )
        code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else TERMINATED
        raise typer.Exit(code) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _print_answer(conductor: "Conductor", storage: str) -> None:
    from rich.console import Console

    from studies.answer import print_answer, results

    # Away from a terminal nobody folds lines, and a table must not be cut.
    console = Console() if sys.stdout.isatty() else Console(width=200)
    runs, scores = conductor.runs(), conductor.ledger.scores(conductor.ids())
    gathered = results(conductor.plan, runs, scores, conductor.chosen)
    print_answer(console, conductor.plan, gathered)
    stored = [run for of_cell in runs.values() for run in of_cell]
    print(f"\n{len(stored)} runs in {storage}; `python -m store scores` queries them.")
    failed = [run for run in stored if run.status == "failed"]
    for run in failed[:5]:
        print(f"run {run.id} ({run.task}, {run.arm}) failed: {run.reason}", file=sys.stderr)
    if failed:
        _fail(f"{len(failed)} runs failed; the same command tries them again", WORK_FAILED)
