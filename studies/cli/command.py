"""The command line that every study shares."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from studies.cli.options import (
    DATABASE,
    Assignments,
    Config,
    Device,
    Plugins,
    Report,
    Storage,
    new_app,
)
from studies.exit_codes import BAD_INPUT, WORK_FAILED
from studies.experiment.study import Study

if TYPE_CHECKING:
    from studies.analysis.verdicts import Verdict
    from studies.execution.running import Call
    from studies.experiment.draft import Draft


def command(
    study: Study, on_verdicts: "Callable[[Sequence[Verdict]], None]" = lambda verdicts: None
) -> Callable[..., None]:
    """The command of a study; `on_verdicts` is told its verdicts, besides printing them."""
    app = application(study, on_verdicts)

    def run(words: Sequence[str] | None = None) -> None:
        app(words, prog_name=study.program)

    return run


def _select_axis(study: Study, axis: str | None) -> Study:
    """The study of an axis, or the study itself."""
    if axis is None:
        return study
    if study.axes is None:
        from registry.errors import ConfigError, Problem

        rule = f"{study.program} has no axes; leave --axis out"
        raise ConfigError([Problem("--axis", rule, axis)])
    return study.axes.read(axis)


def _names(arms: str | None) -> list[str] | None:
    """The arms that were typed, joined by commas; None where none were."""
    if arms is None:
        return None
    names = [arm.strip() for arm in arms.split(",") if arm.strip()]
    if not names:
        from registry.errors import ConfigError, Problem

        rule = f"expected a comma-separated list of arms; got {arms!r}"
        raise ConfigError([Problem("--arms", rule, arms)])
    return names


def _run(draft: "Draft", call: "Call") -> "list[Verdict]":
    from studies.cli.answer import show_answer
    from studies.execution.running import run
    from studies.training.execute import device_named

    call = replace(call, device=device_named(call.device))
    if call.report is not None:
        from studies.report.files import make_folder

        make_folder(call.report)  # which may fail, and should before anything is trained
    return show_answer(draft.study, run(draft, call), call)


def application(
    study: Study, on_verdicts: "Callable[[Sequence[Verdict]], None]" = lambda verdicts: None
) -> typer.Typer:
    """The options of a study, and what they do."""
    app = new_app()

    @app.command(help=study.text)
    def main(
        budget: Annotated[str, typer.Option(help=_budgets_help(study))] = study.default_budget,
        axis: Annotated[
            str | None, typer.Option(hidden=study.axes is None, help=_axes_help(study))
        ] = None,
        arms: Annotated[str | None, typer.Option(help=_arms_help(study))] = None,
        seeds: Annotated[int | None, typer.Option(help="Confirming seeds per arm.")] = None,
        workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 2,
        threads: Annotated[int, typer.Option(min=1, help="Threads of each worker.")] = 1,
        storage: Storage = DATABASE,
        config: Config = None,
        plugins: Plugins = None,
        assignments: Assignments = None,
        device: Device = "cpu",
        plan: Annotated[
            bool, typer.Option("--plan", help="Print what would be done; do nothing.")
        ] = False,
        described: Annotated[
            bool,
            typer.Option("--describe", help="Print question, protocol and settings; do nothing."),
        ] = False,
        rerun: Annotated[
            list[str] | None,
            typer.Option(help="An arm to run again, in place of its results; repeatable."),
        ] = None,
        save_models: Annotated[
            bool,
            typer.Option(
                "--save-models", help="Keep the weights of confirming runs, beside the database."
            ),
        ] = False,
        report: Report = None,
    ) -> None:
        from studies.execution.preview import describe, preview
        from studies.execution.running import Call
        from studies.experiment.load import Typed, load_draft

        with errors():
            chosen = _select_axis(study, axis)
            used = (*chosen.plugins, *(plugins or []))
            call = Call(storage, device, workers, threads, used, rerun or [], report, save_models)
            options = {"only": _names(arms), "seeds": seeds}
            typed = Typed(budget, config, assignments or [], options, plugins or [])
            draft = load_draft(chosen, typed)
            call.check(draft.arms)
            if described:
                describe(draft)
            elif plan:
                preview(draft, storage, workers, rerun or [])
            else:
                on_verdicts(_run(draft, call))

    return app


def _budgets_help(study: Study) -> str:
    return "; ".join(f"{name}: {budget.about}" for name, budget in study.budgets.items())


def _axes_help(study: Study) -> str:
    names = [] if study.axes is None else study.axes.names()
    return f"Another variable, with arms and hypotheses of its own: {', '.join(names)}."


def _arms_help(study: Study) -> str:
    what = f"values of {study.variables[0]}, or " if len(study.variables) == 1 else ""
    return f"Arms, joined by commas: {what}names of the arms that --describe lists."


@contextmanager
def errors() -> Iterator[None]:
    """Turn errors that a user can mend into lines on standard error and an exit code."""
    from registry.errors import ConfigError, DuplicateNameError, UnknownNameError
    from store.errors import StoreError
    from studies.errors import FailedRunsError, InterruptedStudyError, WorkerError

    try:
        yield
    except (ConfigError, StoreError, UnknownNameError, DuplicateNameError) as error:
        fail(str(error), BAD_INPUT)
    except (WorkerError, FailedRunsError) as error:
        fail(str(error), WORK_FAILED)
    except InterruptedStudyError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(error.exit_code) from None


def fail(message: str, code: int) -> None:
    """Say what went wrong on standard error, and end with this exit code."""
    print(f"error: {message}", file=sys.stderr)
    raise typer.Exit(code)
