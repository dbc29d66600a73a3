"""The README of a bundle: what is in it, how to check it, how to use it."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from store.records import Frozen
    from store.results import Results
    from studies.experiment.plan import Plan

TEXT = """\
# {question}

The study `{study}` of encoder-sandbox, as it was stored: {runs}.

| file | what it is |
|---|---|
| `report/report.html` | the answer with figures and tables; `report.md`, `scores.csv`, `verdicts.csv`, LaTeX and BibTeX beside it |
| `{database}` | every run with its scores and curves, and Optuna's trials of its tuning: a SQLite database |
| `{database}-models/` | {weights} |
| `configs/` | each resolved config, by task and arm, with the runs that have it |
| `plan.json` | the plan as it was frozen, with its hash and its time |
| `environment.json` | machines, packages, commits and plug-ins behind the runs |
| `sources/` | the files that the study was typed with, where there were any |
| `MANIFEST` | the sha256 of every other file |

{plans}

## To check it

```console
$ sha256sum -c MANIFEST
$ python -m studies freeze --check .
```

The second needs encoder-sandbox. It compares every file with `MANIFEST`, looks through the database, compares the frozen plan with
its hash, and works out every number of the report again from the database.

## To use it

```console
$ python -m store lengths --storage sqlite:///{database}
$ python -m store scores --storage sqlite:///{database} --format csv
```
{evaluate}
## To run it again

```console
$ {command}
```
"""  # noqa: E501  (lines of a Markdown table cannot be broken)

EVALUATE = """
Its models can be scored at further lengths. That adds rows to the database, so do it in a copy of this folder:

```console
$ python -m studies.evaluate --study {word} --storage sqlite:///{database} --lengths 256{imports}
```
"""  # noqa: E501


def text_of(
    plan: "Plan", database: str, command: str, results: "Results", plugins: Sequence[str]
) -> str:
    """The text of a bundle's README; `database`, `command` and `plugins` are as seen from it."""
    study = plan.study
    names = {"study": study, "word": shlex.quote(study), "database": database}
    imports = "".join(f" --import {shlex.quote(plugin)}" for plugin in plugins)
    models = len({model.run_id for model in results.models(study=study, phase=None)})
    kept = f"the weights of {models} confirming runs, as safetensors"
    counts = sorted(results.counts()[study].items())
    return TEXT.format(
        **names,
        question=plan.question,
        runs=", ".join(f"{count} runs {status}" for status, count in counts),
        weights=kept if models else "no weights: the study was run without `--save-models`",
        plans=_plans(results.protocols(study=study)),
        command=command,
        evaluate=EVALUATE.format(**names, imports=imports) if models else "",
    )


def _plans(frozen: Sequence["Frozen"]) -> str:
    """The frozen plans: their times, and whether results preceded them."""
    if not frozen:
        return "No plan was frozen, so every verdict is exploratory."
    return "\n".join(
        f"Frozen plan of {one.created_at:%Y-%m-%d %H:%M} UTC, "
        + ("after a" if one.runs_before else "before the first")
        + f" confirming run had begun: sha256 `{one.hash}`."
        for one in frozen
    )
