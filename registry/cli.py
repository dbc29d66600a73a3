"""Look at the parts, and at what a config builds."""

import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, ParamSpec

import typer

from registry.errors import ConfigError, Problem, UnknownNameError
from registry.summary import columns, listed, markdown, shown

Imports = Annotated[
    list[str] | None,
    typer.Option("--import", help="A .py file or a module with parts of yours; repeatable."),
]

Words = ParamSpec("Words")

SOURCE = "A preset, a YAML file, or - for stdin."

app = typer.Typer(
    help="Look at the parts, and at what a config builds.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _printed(lines: Callable[Words, Iterator[str]]) -> Callable[Words, None]:
    """A command that prints the lines of a generator once all of them are known.

    Errors go to stderr, with exit code 2.
    """

    @wraps(lines)
    def command(*args: Words.args, **options: Words.kwargs) -> None:
        with _errors_on_stderr():
            print("\n".join(lines(*args, **options)), flush=True)

    return command


@contextmanager
def _errors_on_stderr() -> Generator[None]:
    try:
        yield
    except (ConfigError, UnknownNameError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(2) from error
    except BrokenPipeError as error:
        # The reader has left, as `| head` does; the interpreter would complain at its last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from error


def _width() -> int | None:
    """That of the terminal; None, where a file or another program reads."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _load(plugins: Sequence[str] | None) -> None:
    from registry.plugins import load

    for spec in plugins or []:
        load(spec)


@app.command("list")
@_printed
def list_(
    kind: Annotated[str | None, typer.Argument(help="Only this kind.")] = None,
    search: Annotated[
        str, typer.Option(help="Only parts whose name or docstring mentions this word.")
    ] = "",
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="As tables in Markdown, such as docs/parts.md.")
    ] = False,
    plugins: Imports = None,
) -> Iterator[str]:
    """Print the names of every kind, and presets; `--import studies.tasks` adds the tasks."""
    _load(plugins)
    yield from (markdown if as_markdown else listed)(kind, search)
    if not kind and not plugins and not as_markdown:
        yield from ["", "More kinds come with --import, such as --import studies.tasks."]


@app.command()
@_printed
def show(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[kind] name",
            help="A part's name, or that of a preset, after its kind where several have it.",
        ),
    ],
    plugins: Imports = None,
) -> Iterator[str]:
    """Print one part: its class, file, docstring, options and declared facts; or one preset."""
    _load(plugins)
    yield shown(words)


@app.command()
@_printed
def explain(
    config: Annotated[str, typer.Argument(help=SOURCE)],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="dotted.key=value, the value in YAML; repeatable."),
    ] = None,
    length: Annotated[int, typer.Option(min=1, help="Length of the sample batch.")] = 8,
    plugins: Imports = None,
) -> Iterator[str]:
    """Print what a config builds: its size, each part with parameters and FLOPs, and every tensor.

    A file that keeps its config under `encoder:`, as studies do, is read there.
    """
    from registry import inspect
    from registry.config import read_config

    _load(plugins)
    checked, unread = read_config(config, settings or [])
    found = inspect.explain(checked, length)
    yield from found.headline
    yield from [f"not looked at: {', '.join(unread)}"] * bool(unread)
    yield ""
    yield from found.table(_width())
    yield ""
    yield from columns([("tensor", "axes", "shape", "held"), *found.tensors], _width())


@app.command()
@_printed
def draw(
    mask: Annotated[
        str,
        typer.Argument(help='A mask, such as "causal & ~window(radius=2)", a preset or YAML file.'),
    ],
    size: Annotated[int, typer.Option(min=1, help="Queries, and keys.")] = 8,
    keys: Annotated[int | None, typer.Option(min=1, help="Keys, if there are others.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="A file for an SVG picture, in place of the text.")
    ] = None,
    plugins: Imports = None,
) -> Iterator[str]:
    """Print a mask, or that of a config, as text: a row for each query, # where it may attend.

    A picture has a colour for each mask that | joins.
    """
    from registry.choices import build_mask, resolve
    from registry.config import mask_of
    from registry.draw import layers_of, write_svg

    _load(plugins)
    rule = mask_of(mask)
    try:
        drawing = build_mask(resolve("mask", rule)).draw(size, keys=keys)
        layers = {} if out is None else layers_of(rule, size, keys)
    except ConfigError as error:
        raise error.under("mask") from None
    except ValueError as error:
        raise ConfigError([Problem("mask", str(error))]) from error
    except (TypeError, NotImplementedError) as error:
        raise ConfigError([Problem("mask", f"{type(error).__name__}: {error}")]) from error
    yield drawing if out is None else write_svg(layers, rule, out)


@app.command()
@_printed
def diff(
    one: Annotated[str, typer.Argument(help=SOURCE)],
    other: Annotated[str, typer.Argument(help="Another.")],
    length: Annotated[int, typer.Option(min=1, help="Length of the sample batch.")] = 16,
    plugins: Imports = None,
) -> Iterator[str]:
    """Print what differs between two configs, also what neither says.

    Options first; then parameters, FLOPs, norms and the size of untrained states, all measured.
    """
    from registry.config import read_config
    from registry.diff import differences

    _load(plugins)
    configs = [read_config(source, [])[0] for source in (one, other)]
    yield from differences(configs[0], configs[1], (one, other), length, _width())


@app.command()
@_printed
def schema(plugins: Imports = None) -> Iterator[str]:
    """Print the JSON Schema of an encoder's config, with the parts of every kind."""
    import json

    from registry.config import json_schema

    _load(plugins)
    yield json.dumps(json_schema(), indent=2, ensure_ascii=False)


@app.command()
def check(
    target: Annotated[
        str | None,
        typer.Argument(help="A part's name, a kind, a .py file, or a module; all if left out."),
    ] = None,
    kind: Annotated[str | None, typer.Option(help="Only parts of this kind.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out the promises that take seconds each.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="A promise, with underscores; repeatable.")
    ] = None,
    plugins: Imports = None,
) -> None:
    """Try the promises of a part, and exit with 1 if one is broken.

    A promise is one sentence that every part of a kind keeps, such as "a sample alone equals itself
    in any batch". Your own class is checked like ours: python -m registry check my_file.py
    """
    ok = True
    with _errors_on_stderr():
        from registry.conformance import parts_of, progress

        _load(plugins)
        width = _width() or 100
        for ok, line in progress(parts_of(target, kind), quick, only or [], width):  # noqa: B007
            print(line, flush=True)
    raise typer.Exit(0 if ok else 1)


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line."""
    app(args=words, prog_name="python -m registry")
