"""The command line: compile a grammar, and look at what was compiled.

``glrgrid lint GRAMMAR`` says what is wrong with a grammar, ``glrgrid compile GRAMMAR -t TOKENIZER -o ARTIFACT``
makes an artifact, ``glrgrid inspect ARTIFACT`` says what is in it,
``glrgrid mask ARTIFACT -t TOKENIZER --prefix TEXT`` what may come next, ``glrgrid check ARTIFACT FILE -t TOKENIZER``
whether it accepts a text. ``glrgrid sql`` has commands of its own, for SQL under a role.

What was asked for goes to standard output; progress, warnings and errors go to standard error, one line
each. The exit code is 0, 1 if glrgrid refused (``error: ...``) or a checked text is not accepted, or 2 if the command
line was not understood.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from . import (
    CompiledGrammar,
    CompileWarning,
    Explanation,
    Grammar,
    GrammarError,
    Matcher,
    Vocab,
    __version__,
    _native,
    compile,
    dialects,
    grammars,
    load,
)
from .errors import GlrgridError, StateError
from .sql.cli import app as sql_app

__all__ = ["app", "main"]

SHOWN_WARNINGS = 10
"""Warnings about a compiled grammar that are printed; ``--json`` has all of them."""

SHOWN_SECTION_SHARE = 0.01
"""Sections with less than this share of the artifact are summed up."""

SHOWN_TOKENS = 40
"""Tokens that ``mask`` lists unless told otherwise."""

SHOWN_LINE = 100
"""Characters of the line that ``check`` shows."""

app = typer.Typer(
    name="glrgrid",
    help="Compile grammars into artifacts that serve exact next-token masks.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(sql_app)


GrammarArgument = Annotated[
    str, typer.Argument(help="A grammar's file, or the name of a bundled grammar.", metavar="GRAMMAR")
]
DialectOption = Annotated[
    str | None,
    typer.Option(help=f"One of {', '.join(dialects.DIALECTS)}; default: what the file looks like."),
]
TokenizerOption = Annotated[
    str,
    typer.Option(
        "--tokenizer", "-t", help='The file of a tokenizer, the folder of a model, or "default" (bundled).'
    ),
]
ArtifactArgument = Annotated[Path, typer.Argument(help="An artifact that compile wrote.", metavar="ARTIFACT")]


class OnBudget(StrEnum):
    """What ``compile`` does when a limit is passed."""

    partial = "partial"
    error = "error"


class Automaton(StrEnum):
    """What ``inspect`` can draw."""

    lexer = "lexer"
    parser = "parser"


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
    grammar: GrammarArgument,
    tokenizer: TokenizerOption,
    output: Annotated[Path, typer.Option("--output", "-o", help="The artifact to write.")],
    lexer: Annotated[
        str | None, typer.Option(help="How lexemes are cut; default: what the grammar says.")
    ] = None,
    start: Annotated[str | None, typer.Option(help="Start rule; default: the dialect's.")] = None,
    dialect: DialectOption = None,
    max_seconds: Annotated[
        float | None, typer.Option(help="Seconds that the build may take.", show_default=False)
    ] = None,
    max_memory_mb: Annotated[
        float | None, typer.Option(help="Memory that it may take, in MiB.", show_default=False)
    ] = None,
    max_artifact_mb: Annotated[
        float | None, typer.Option(help="Size that the artifact may have, in MiB.", show_default=False)
    ] = None,
    on_budget: Annotated[
        OnBudget, typer.Option(help="Past a limit: leave the rest to be filled on demand, or fail.")
    ] = OnBudget.partial,
    as_json: Annotated[bool, typer.Option("--json", help="Print the statistics as one JSON object.")] = False,
) -> None:
    """Compile a grammar for a tokenizer and write the artifact."""
    with _one_line_errors(), _one_line_warnings():
        _refuse_to_overwrite(output, grammar, tokenizer)
        text = _grammar_text(grammar)
        with _named(grammar):
            parsed = _read(text, dialect or dialects.detect(text, grammar), start=start, lexer=lexer)
        vocab = _vocab(tokenizer)
        with _named(grammar), _progress_bar() as progress:
            compiled = compile(
                parsed,
                vocab,
                max_seconds=max_seconds,
                max_memory_mb=max_memory_mb,
                max_artifact_mb=max_artifact_mb,
                on_budget=on_budget.value,
                progress=progress,
            )
        compiled.save(output)
    for message in compiled.warnings[:SHOWN_WARNINGS]:
        _tell("warning", message)
    if more := compiled.warnings[SHOWN_WARNINGS:]:
        _tell("warning", f"and {len(more)} more like these; --json lists them all")
    if as_json:
        print(json.dumps(_report(grammar, tokenizer, output, compiled), indent=2))
    else:
        _print_tables(output, compiled)


def _refuse_to_overwrite(output: Path, *inputs: str | Path) -> None:
    if output.is_file() and any(Path(read).is_file() and output.samefile(read) for read in inputs):
        raise StateError(f"{output} is to be read; name another file with --output")


@app.command("lint")
def lint_command(
    grammar: GrammarArgument,
    dialect: DialectOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what is wrong with a grammar, and how large it is."""
    with _one_line_errors():
        text = _grammar_text(grammar)
        chosen = dialect or dialects.detect(text, grammar)
        if chosen not in dialects.DIALECTS:
            _read(text, chosen)
        report = dialects.lint(text, chosen)
    if as_json:
        print(json.dumps(report, indent=2))
    else:
        _print_linted(grammar, report)
    if report["errors"]:
        raise typer.Exit(1)


@app.command("mask")
def mask_command(
    artifact: ArtifactArgument,
    tokenizer: TokenizerOption,
    prefix: Annotated[str, typer.Option("--prefix", "-p", help="The output so far.")] = "",
    explain: Annotated[
        str | None,
        typer.Option(
            help="Say why a token may come next, or may not: its text, or its id as #ID.", metavar="TOKEN"
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Tokens to list.")] = SHOWN_TOKENS,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what may come next after some output."""
    with _one_line_errors(), _one_line_warnings():
        vocab = _vocab(tokenizer)
        matcher = Matcher(load(artifact, vocab))
        data = prefix.encode("utf-8", "surrogateescape")
        if (taken := matcher.accept_bytes(data)) < len(data):
            refused = Matcher(load(artifact, vocab)).explain_bytes(data)
            raise StateError(f"the prefix is refused at byte {taken}: {refused.reason}")
        if explain is not None:
            report, show = _explained(matcher, vocab, explain), _print_explained
        else:
            report, show = _next_tokens(matcher, vocab, limit), _print_next_tokens
    if as_json:
        print(json.dumps({"prefix": prefix, **report}, indent=2))
    else:
        show(report)


@app.command("check")
def check_command(
    artifact: ArtifactArgument,
    file: Annotated[str, typer.Argument(help='The text, as a file; "-" is standard input.', metavar="FILE")],
    tokenizer: TokenizerOption,
) -> None:
    """Say whether a text is accepted, or where it goes wrong and what could have stood there."""
    with _one_line_errors(), _one_line_warnings():
        matcher = Matcher(load(artifact, _vocab(tokenizer)))
        data = _file_bytes(file)
        if (taken := matcher.accept_bytes(data)) == len(data) and matcher.is_accepting():
            print(f"{file}: accepted, {taken:,} bytes")
            return
        if taken == len(data):
            verdict = "the text ends here but is not complete"
            expected = matcher.expected_terminals()
        else:
            explanation = matcher.explain_bytes(data[taken : taken + 1])
            verdict, expected = explanation.reason.rpartition("; expected")[0], explanation.expected
    _print_position(file, data, taken, verdict)
    print(f"expected: {', '.join(expected) or 'nothing'}")
    raise typer.Exit(1)


@app.command("inspect")
def inspect_command(
    artifact: ArtifactArgument,
    dot: Annotated[Automaton | None, typer.Option(help="Draw an automaton in Graphviz's language.")] = None,
    svg: Annotated[Automaton | None, typer.Option(help="Draw it as SVG; needs Graphviz.")] = None,
    max_states: Annotated[int, typer.Option(min=1, help="Largest automaton to draw.")] = 200,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what an artifact holds, or draw its automata."""
    with _one_line_errors():
        source = str(artifact)
        if dot is not None:
            print(_native.dot(source, dot.value, max_states), end="")
        elif svg is not None:
            print(_svg(_native.dot(source, svg.value, max_states)), end="")
        else:
            report = _native.inspect(source)
            if as_json:
                print(json.dumps(report, indent=2))
            else:
                _print_inspected(artifact, report)


def _read(text: str, dialect: str, **options: str | None) -> Grammar:
    """Read a grammar; options that are not given are left to the dialect, which must have the others."""
    given = {name: value for name, value in options.items() if value is not None}
    known = {"lark": {"start", "lexer"}, "gbnf": {"start"}}.get(dialect, set())
    for name in given.keys() - known:
        raise GrammarError(f"grammars in {dialect} have no --{name}; leave it out")
    return dialects.read(text, dialect, **given)


def _vocab(tokenizer: str) -> Vocab:
    return Vocab.default() if tokenizer == "default" else Vocab.from_file(tokenizer)


def _file_bytes(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise StateError(f"{name}: cannot be read: {error.strerror or error}; pass a file") from error


def _svg(dot: str) -> str:
    program = shutil.which("dot")
    if program is None:
        raise StateError("Graphviz's program dot is not installed; install Graphviz, or use --dot")
    drawn = subprocess.run([program, "-Tsvg"], input=dot, capture_output=True, encoding="utf-8", check=False)
    if drawn.returncode:
        raise StateError(f"{program} failed: {drawn.stderr}")
    return drawn.stdout


def _quoted(data: bytes | None) -> str:
    """Bytes as one line of readable text."""
    if data is None:
        return "(no text)"
    text = data.decode("utf-8", "backslashreplace")
    return '"' + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text) + '"'


def _next_tokens(matcher: Matcher, vocab: Vocab, limit: int) -> dict[str, Any]:
    allowed = [int(token) for token in matcher.mask().nonzero()[0]]
    return {
        "complete": matcher.is_accepting(),
        "expected": matcher.expected_terminals(),
        "forced": _quoted(matcher.forced_bytes()),
        "allowed": len(allowed),
        "size": vocab.size,
        "tokens": [
            {"id": token, "text": "(end)" if token in vocab.eos_ids else _quoted(vocab.token_bytes(token))}
            for token in allowed[:limit]
        ],
    }


def _explained(matcher: Matcher, vocab: Vocab, token: str) -> dict[str, Any]:
    token_id: int | None
    if token.startswith("#") and token[1:].isdecimal():
        token_id = int(token[1:])
        explanation: Explanation = matcher.explain(token_id)
        text = _quoted(vocab.token_bytes(token_id))
    else:
        data = token.encode("utf-8", "surrogateescape")
        token_id = next((id for id, spelled in enumerate(vocab.tokens) if spelled == data), None)
        explanation = matcher.explain_bytes(data)
        text = _quoted(data)
    return {
        "id": token_id,
        "text": text,
        "allowed": explanation.allowed,
        "reason": explanation.reason,
        "at_byte": explanation.at_byte,
        "found": explanation.found,
        "expected": explanation.expected,
    }


def _print_next_tokens(report: dict[str, Any]) -> None:
    print(f"output: {'complete' if report['complete'] else 'not complete'}")
    print(f"expected: {', '.join(report['expected']) or 'nothing'}")
    if report["forced"] != '""':
        print(f"forced: {report['forced']}")
    print(f"allowed: {report['allowed']:,} of {report['size']:,} ids")
    for token in report["tokens"]:
        print(f"{token['id']:>8}  {token['text']}")
    if more := report["allowed"] - len(report["tokens"]):
        print(f"     ...  and {more:,} more")


def _print_explained(report: dict[str, Any]) -> None:
    what = "no token of its own" if report["id"] is None else f"token {report['id']}"
    print(f"{report['text']} ({what}): {'allowed' if report['allowed'] else 'not allowed'}")
    print(f"reason: {report['reason']}")
    if not report["allowed"]:
        print(f"at byte: {report['at_byte']}")
        print(f"found: {', '.join(report['found']) or 'no terminal'}")
    print(f"expected{' after it' if report['allowed'] else ''}: {', '.join(report['expected']) or 'nothing'}")


def _print_position(file: str, data: bytes, at: int, verdict: str) -> None:
    """``FILE:LINE:COLUMN: verdict``, the line, and a mark below the place. Columns are characters."""
    start = data.rfind(b"\n", 0, at) + 1
    end = data.find(b"\n", at)
    before = data[start:at].decode("utf-8", "replace")
    after = data[at : None if end < 0 else end].decode("utf-8", "replace")
    line = data.count(b"\n", 0, at) + 1
    print(f"{file}:{line}:{len(before) + 1}: {verdict} (byte {at:,})")
    shown = before[-SHOWN_LINE // 2 :]
    print("  " + "".join(c if c.isprintable() else " " for c in (shown + after)[:SHOWN_LINE]))
    print("  " + " " * len(shown) + "^")


def _print_linted(grammar: str, report: dict[str, Any]) -> None:
    print(f"{grammar}: {report['dialect']}")
    for error in report["errors"]:
        print(f"error: {error['message']}")
    for message in report["warnings"]:
        print(f"warning: {message}")
    for conflict in report["conflicts"]:
        print(
            f"conflict: after {json.dumps(conflict['example'], ensure_ascii=False)}: {' | '.join(conflict['actions'])}"
        )
    more = report["sizes"].get("lr_conflicts", 0) - len(report["conflicts"])
    if more > 0:
        print(f"conflict: and {more:,} more")
    if report["sizes"]:
        print(", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in report["sizes"].items()))


def _print_inspected(artifact: Path, report: dict[str, Any]) -> None:
    console = Console(highlight=False)
    total: int = report["artifact_bytes"]
    facts = [
        ("format version", str(report["format_version"])),
        ("grammar", report["grammar_fingerprint"][:16]),
        ("vocabulary", report["vocab_fingerprint"][:16]),
        ("ids", f"{report['vocab_size']:,}"),
    ]
    counts = [(name.replace("_", " "), f"{count:,}") for name, count in report["counts"].items()]
    sections = _section_rows(report["section_bytes"], total)
    for title, unit, lines in [
        ("artifact", "", facts),
        ("count", "", counts),
        ("section", "bytes", sections),
    ]:
        _print_table(console, title, unit, lines)
    console.print(f"terminals: {', '.join(report['terminals'])}", soft_wrap=True, markup=False)


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
        raise GrammarError(f"{name}: cannot be read: {reason}; pass a grammar's file") from error


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
    del stats["peak_bytes"]

    rows = [(stage, f"{ms:,.1f}") for stage, ms in stages.items()]
    rows.append(("total", f"{sum(stages.values()):,.1f}"))
    counts = [(name.replace("_", " "), f"{count:,}") for name, count in stats.items()]
    shown = _section_rows(sections, total)

    console = Console(highlight=False)
    for title, unit, lines in [("stage", "ms", rows), ("count", "", counts), ("section", "bytes", shown)]:
        _print_table(console, title, unit, lines)
    console.print(f"wrote {output}: {total:,} bytes", soft_wrap=True, markup=False)


def _section_rows(sections: dict[str, int], total: int) -> list[tuple[str, str]]:
    """Sizes, largest first, small ones summed up."""
    largest = sorted(sections.items(), key=lambda item: (-item[1], item[0]))
    shown = [(name, f"{size:,}") for name, size in largest if size >= SHOWN_SECTION_SHARE * total]
    rest = largest[len(shown) :]
    shown.append((f"{len(rest)} smaller sections", f"{sum(size for _, size in rest):,}"))
    shown.append(("header and padding", f"{total - sum(sections.values()):,}"))
    shown.append(("total", f"{total:,}"))
    return shown


def _print_table(console: Console, title: str, unit: str, lines: list[tuple[str, str]]) -> None:
    table = Table(title_justify="left", box=None, pad_edge=False)
    table.add_column(title, min_width=24)
    table.add_column(unit, justify="right", min_width=10)
    for line in lines:
        table.add_row(*line)
    console.print(table)
    console.print()


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
def _named(file: str) -> Iterator[None]:
    """Let errors say which file they are about."""
    try:
        yield
    except GlrgridError as error:
        error.args = (f"{file}: {error}", *error.args[1:])
        raise


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
