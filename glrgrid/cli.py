"""The command line: ``glrgrid compile GRAMMAR -t TOKENIZER -o OUT``.

What was asked for goes to standard output; progress, warnings and errors go to standard error, one line
each. The exit code is 0, 1 if glrgrid refused (``error: ...``), or 2 if the command line was not understood.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from . import CompiledGrammar, CompileWarning, Grammar, GrammarError, Vocab, __version__, compile, grammars
from .errors import GlrgridError

__all__ = ["app", "main"]

SHOWN_WARNINGS = 10
"""Warnings about a compiled grammar that are printed; ``--json`` has all of them."""

SHOWN_SECTION_SHARE = 0.01
"""Sections with less than this share of the artifact are summed up."""

app = typer.Typer(
    name="glrgrid",
    help="Compile grammars into artifacts that serve exact next-token masks.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Entry point of the ``glrgrid`` command."""
    app()


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"glrgrid {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Compile grammars into artifacts that serve exact next-token masks."""


@app.command("compile")
def compile_command(
    grammar: Annotated[
        str, typer.Argument(help="A .lark file, or the name of a bundled grammar.", metavar="GRAMMAR")
    ],
    tokenizer: Annotated[
        str,
        typer.Option(
            "--tokenizer", "-t", help='A tokenizer.json, a folder with one, or "default" (bundled).'
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The artifact to write.")],
    lexer: Annotated[
        str | None, typer.Option(help="How lexemes are cut; default: what the grammar says.")
    ] = None,
    start: Annotated[str, typer.Option(help="Start rule.")] = "start",
    as_json: Annotated[bool, typer.Option("--json", help="Print the statistics as one JSON object.")] = False,
) -> None:
    """Compile a grammar for a tokenizer and write the artifact."""
    with _one_line_errors(), _one_line_warnings():
        parsed = Grammar.from_lark(_grammar_text(grammar), start=start, lexer=lexer)
        vocab = Vocab.default() if tokenizer == "default" else Vocab.from_file(tokenizer)
        with _progress_bar() as progress:
            compiled = compile(parsed, vocab, progress=progress)
        compiled.save(output)
    for message in compiled.warnings[:SHOWN_WARNINGS]:
        _tell("warning", message)
    if more := compiled.warnings[SHOWN_WARNINGS:]:
        _tell("warning", f"and {len(more)} more like these; --json lists them all")
    if as_json:
        print(json.dumps(_report(grammar, tokenizer, output, compiled), indent=2))
    else:
        _print_tables(output, compiled)


def _grammar_text(name: str) -> str:
    """The text of a bundled grammar or of a file; the bundled one wins, ``./name`` is always a file."""
    known = grammars.names()
    if name in known:
        return grammars.load(name)
    try:
        return Path(name).read_text("utf-8-sig")
    except FileNotFoundError:
        bundled = ", ".join(known)
        raise GrammarError(
            f"{name}: no such file, and no bundled grammar has that name; there are: {bundled}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise GrammarError(f"{name}: cannot be read: {reason}; pass a .lark file") from error


def _report(grammar: str, tokenizer: str, output: Path, compiled: CompiledGrammar) -> dict[str, Any]:
    return {
        "grammar": grammar,
        "tokenizer": tokenizer,
        "output": str(output),
        "grammar_fingerprint": compiled.grammar_fingerprint,
        "vocab_fingerprint": compiled.vocab_fingerprint,
        "vocab_size": compiled.vocab_size,
        "warnings": compiled.warnings,
        "stats": compiled.stats,
    }


def _print_tables(output: Path, compiled: CompiledGrammar) -> None:
    stats = compiled.stats
    stages: dict[str, float] = stats.pop("milliseconds")
    sections: dict[str, int] = stats.pop("section_bytes")
    total: int = stats.pop("artifact_bytes")

    rows = [(stage, f"{ms:,.1f}") for stage, ms in stages.items()]
    rows.append(("total", f"{sum(stages.values()):,.1f}"))
    counts = [(name.replace("_", " "), f"{count:,}") for name, count in stats.items()]
    largest = sorted(sections.items(), key=lambda item: (-item[1], item[0]))
    shown = [(name, f"{size:,}") for name, size in largest if size >= SHOWN_SECTION_SHARE * total]
    rest = largest[len(shown) :]
    shown.append((f"{len(rest)} smaller sections", f"{sum(size for _, size in rest):,}"))
    shown.append(("header and padding", f"{total - sum(sections.values()):,}"))
    shown.append(("total", f"{total:,}"))

    console = Console(highlight=False)
    for title, unit, lines in [("stage", "ms", rows), ("count", "", counts), ("section", "bytes", shown)]:
        table = Table(title_justify="left", box=None, pad_edge=False)
        table.add_column(title, min_width=24)
        table.add_column(unit, justify="right", min_width=10)
        for line in lines:
            table.add_row(*line)
        console.print(table)
        console.print()
    console.print(f"wrote {output}: {total:,} bytes", soft_wrap=True, markup=False)


@contextmanager
def _progress_bar() -> Iterator[Callable[[str, float], object] | None]:
    """A bar on standard error, or nothing if that is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description:>14}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda stage, share: bar.update(task, description=stage, completed=share)


@contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except GlrgridError as error:
        _tell("error", str(error))
        raise typer.Exit(1) from error


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Print what is warned of inside, also if it ends in an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for warning in caught:
                if not issubclass(warning.category, CompileWarning):  # all of those are in .warnings
                    _tell("warning", str(warning.message))


def _tell(kind: str, message: str) -> None:
    print(f"{kind}: {' '.join(message.split())}", file=sys.stderr)


if __name__ == "__main__":
    main()
