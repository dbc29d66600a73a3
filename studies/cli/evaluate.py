"""The command that scores stored models at further lengths."""

import sys
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from studies.cli.command import errors, fail
from studies.cli.options import DATABASE, Device, Plugins, Storage, help_text, new_app
from studies.exit_codes import BAD_INPUT, INTERRUPTED, WORK_FAILED

if TYPE_CHECKING:
    from store.records import Run
    from store.results import Results
    from studies.training.saved_models import Added, Asked

HELP = """Score stored models at further lengths, and add the scores to their runs.

    python -m studies.evaluate 17 18 --lengths 256,512
    python -m studies.evaluate --study extrapolation --lengths 256,512

The weights are those that --save-models kept. Each length is measured on the very set that the
study would have used there. Added scores are marked as such: they are exploratory, and no verdict
and no number of the study's answer uses them. `python -m store lengths` shows them.
"""

MOST = 2**31 - 1
"""No run has a larger id, and no sequence more tokens."""

app = new_app()


@app.command(help=help_text(HELP))
def evaluate(
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="RUN", help="Ids of runs, such as 17 or 3,5.")
    ] = None,
    lengths: Annotated[str, typer.Option(help="Lengths, separated by commas.")] = "",
    study: Annotated[
        str | None, typer.Option(help="Every run of this study that has weights, instead of ids.")
    ] = None,
    storage: Storage = DATABASE,
    split: Annotated[Literal["test", "validation"], typer.Option(help="Which sets.")] = "test",
    examples: Annotated[
        int | None, typer.Option(min=1, help="Sequences per length; by default as in the study.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Sequences at a time; less takes less memory.")
    ] = None,
    plugins: Plugins = None,
    device: Device = "cpu",
) -> None:
    with errors():
        wanted = _numbers(lengths, "--lengths")
        ids = [number for word in runs or [] for number in _numbers(word, "RUN")]
        if not wanted:
            fail("--lengths is required, for example --lengths 256,512", BAD_INPUT)
        if bool(ids) == (study is not None):
            fail("give either the ids of runs or --study", BAD_INPUT)
        from registry.plugins import load as load_plugin
        from store.results import Results
        from studies.training.execute import device_named
        from studies.training.saved_models import Asked

        for plugin in plugins or []:
            load_plugin(plugin)
        with closing(Results(storage)) as results:
            chosen = _of_study(results, study) if study else _of_ids(results, ids)
            _warn_of_changed_code(results, chosen)
        asked = Asked(wanted, split, examples, batch_size, device_named(device))
        _score(chosen, asked, storage)


def _numbers(text: str, what: str) -> tuple[int, ...]:
    words = [word for word in text.split(",") if word.strip()]
    wrong = [word for word in words if not word.strip().isdecimal() or not 1 <= int(word) <= MOST]
    if wrong:
        rule = f"expected whole numbers from 1 to {MOST:,}, separated by commas"
        fail(f"{what}: {rule}; got {wrong[0]!r}", BAD_INPUT)
    return tuple(dict.fromkeys(map(int, words)))


def _of_ids(results: "Results", ids: Sequence[int]) -> list["Run"]:
    from studies.training.saved_models import saved_model

    runs = [results.run(number) for number in dict.fromkeys(ids)]
    for run in runs:
        saved_model(run, results)
    return runs


def _of_study(results: "Results", study: str) -> list["Run"]:
    """The runs of a study's latest call that have weights."""
    from registry.errors import UnknownNameError
    from studies.errors import ModelError

    if study not in results.studies():
        raise UnknownNameError("study with runs", study, list(results.studies()))
    runs = results.runs(study=study, status="done", current=True)
    saved = {model.run_id for model in results.models(study=study)}
    having = [run for run in runs if run.id in saved]
    if not having:
        raise ModelError(
            f"no run of {study} has saved weights; run the study with --save-models, and with "
            "--rerun ARM for runs that are stored already"
        )
    if len(having) < len(runs):
        lacking = len(runs) - len(having)
        print(f"Note: {lacking} of {len(runs)} runs have no saved weights.", file=sys.stderr)
    return having


def _warn_of_changed_code(results: "Results", runs: Sequence["Run"]) -> None:
    """Name the parts whose source differs from that of a run."""
    from studies.training.saved_models import changed_parts, config_of

    by_code: dict[Any, list[Run]] = {}
    for run in runs:
        by_code.setdefault(run.code_hash, []).append(run)
    for same in by_code.values():
        changed = list(changed_parts(same[0], config_of(same[0]), results))
        if changed:
            numbers = ", ".join(str(run.id) for run in same)
            print(
                f"Warning: the code of {', '.join(changed)} changed after run {numbers}; "
                "the added scores may be those of another model.",
                file=sys.stderr,
            )


def _score(runs: Sequence["Run"], asked: "Asked", storage: str) -> None:
    from store.ledger import Ledger
    from studies.training.execute import out_of_memory
    from studies.training.saved_models import add_later_scores

    ledger, count = Ledger.open(storage), 0
    for number, run in enumerate(runs):
        try:
            added = add_later_scores(run, asked, ledger, storage)
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            said = str(error).partition("\n")[0] or type(error).__name__
            fail(
                f"run {run.id}: out of memory at length {max(asked.lengths)} ({said}); "
                "use shorter lengths or a smaller --batch-size",
                WORK_FAILED,
            )
        except KeyboardInterrupt:
            state = f"{number} of {len(runs)} runs scored"
            fail(f"interrupted: {state}. Rerun the command to resume.", INTERRUPTED)
        count += len(added.scores)
        print(f"run {run.id} ({run.task}, {run.arm}, seed {run.seed})")
        for length in asked.lengths:
            print(f"  {length:>6}  {_outcome(length, added)}")
    tail = " (exploratory: no verdict uses them)" if count else ""
    print(f"{count} scores added to {storage}{tail}")


def _outcome(length: int, added: "Added") -> str:
    """The result at one length: numbers, or why there are no new ones."""
    if length in added.known:
        count = added.known[length]
        return f"already stored ({f'{count} answers' if count else 'not applicable'})"
    if length in added.refused:
        return f"not applicable: {added.refused[length]}"
    values = {score.metric: score.value for score in added.scores if score.length == length}
    return "  ".join(
        f"{metric} {value:.3f}" for metric, value in values.items() if value is not None
    )
