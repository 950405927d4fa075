"""``glrgrid sql``: a database's catalog as a file, a role's artifact, its statements checked, its masks probed.

Results go to standard output, for ``--json`` as one JSON object; the exit code is 1 if glrgrid refused, a statement has
violations, or a probe found a bypass.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ..compiled import compile, load
from ..errors import ArtifactError, PolicyError
from ..grammar import Grammar
from .access import Access
from .catalog import Catalog
from .checker import SemanticChecker
from .probe import probe
from .role import Role

__all__ = ["app"]

app = typer.Typer(
    name="sql", help="SQL under a role: see docs/sql.md.", no_args_is_help=True, rich_markup_mode=None
)

RoleOption = Annotated[Path, typer.Option("--role", "-r", help="The role, in TOML.")]
CatalogOption = Annotated[
    Path,
    typer.Option("--catalog", "-c", help="What snapshot wrote, a SQLite database, or CREATE statements."),
]
TokenizerOption = Annotated[
    str, typer.Option("--tokenizer", "-t", help="A tokenizer's file, a model's folder, or \"default\".")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def _shell() -> Any:
    """The command line that this is a part of; imported late because it imports this."""
    from .. import cli

    return cli


def _catalog(path: Path) -> Catalog:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PolicyError(f"{path}: cannot be read: {error.strerror or error}; pass a catalog") from None
    if data.startswith(b"SQLite format 3\0"):
        return Catalog.from_sqlite(path)
    try:
        text = data.decode()
        return Catalog.from_dict(json.loads(text)) if text[:1] == "{" else Catalog.from_ddl(text)
    except ValueError as error:
        raise PolicyError(f"{path}: no catalog: {error}") from None


def _may_say(role: Path, catalog: Path, dialect: str) -> tuple[Access, Grammar]:
    """What a role may do with a catalog, and the grammar of what it may say."""
    access = Access.of(Role.from_toml(role), _catalog(catalog), dialect)
    return access, Grammar._from_access(access)


@app.command("snapshot")
def snapshot_command(
    database: Annotated[Path, typer.Argument(help="A SQLite database, or CREATE statements.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The catalog to write; default: print it.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write what a database holds as a catalog, in JSON."""
    with _shell()._one_line_errors():
        if output is not None:
            _shell()._refuse_to_overwrite(output, database)
        catalog = _catalog(database)
        text = json.dumps(catalog.to_dict(), indent=1, ensure_ascii=False) + "\n"
        if output is None:
            print(text, end="")
            return
        try:
            output.write_text(text, "utf-8")
        except OSError as error:
            raise PolicyError(f"{output}: cannot be written: {error.strerror or error}") from None
    report = {
        "output": str(output),
        "relations": len(catalog.tables),
        "columns": sum(len(table.columns) for table in catalog.tables),
        "fingerprint": catalog.fingerprint,
    }
    _print(report, as_json)


@app.command("compile")
def compile_command(
    role: RoleOption,
    catalog: CatalogOption,
    tokenizer: TokenizerOption,
    output: Annotated[Path, typer.Option("--output", "-o", help="The artifact to write.")],
    dialect: Annotated[str, typer.Option(help="The dialect of SQL.")] = "sqlite",
    as_json: JsonOption = False,
) -> None:
    """Compile what a role may say for a tokenizer and write the artifact."""
    shell = _shell()
    with shell._one_line_errors(), shell._one_line_warnings():
        shell._refuse_to_overwrite(output, role, catalog, tokenizer)
        access, grammar = _may_say(role, catalog, dialect)
        with shell._progress_bar() as progress:
            compiled = compile(grammar, shell._vocab(tokenizer), progress=progress)
        compiled.save(output)
    report = {
        "output": str(output),
        "role": access.role.name,
        "relations": sum(table.reachable for table in access.tables),
        "functions": len(access.functions),
        "fingerprint": access.fingerprint,
        "grammar_fingerprint": compiled.grammar_fingerprint,
        "artifact_bytes": compiled.stats["artifact_bytes"],
    }
    _print(report, as_json)


@app.command("check")
def check_command(
    file: Annotated[str, typer.Argument(help='One statement, as a file; "-" is standard input.')],
    role: RoleOption,
    catalog: CatalogOption,
    as_json: JsonOption = False,
) -> None:
    """Say whether a role may say a statement, or what is wrong with it."""
    shell = _shell()
    with shell._one_line_errors():
        try:
            text = shell._file_bytes(file).decode()
        except UnicodeDecodeError:
            raise PolicyError(f"{file}: it is not UTF-8 text") from None
        found = SemanticChecker(_catalog(catalog), Role.from_toml(role)).check(text)
    if as_json:
        print(json.dumps({"file": file, "violations": list(map(asdict, found))}, indent=2))
    else:
        for violation in found:
            print(f"{file}: {violation}")
        if not found:
            print(f"{file}: no violations")
    if found:
        raise typer.Exit(1)


@app.command("probe")
def probe_command(
    role: RoleOption,
    catalog: CatalogOption,
    tokenizer: TokenizerOption,
    artifact: Annotated[
        Path | None, typer.Option("--artifact", "-a", help="What was compiled for them; default: compile it.")
    ] = None,
    dialect: Annotated[str, typer.Option(help="The dialect of SQL.")] = "sqlite",
    as_json: JsonOption = False,
) -> None:
    """Try to spell every forbidden name at every position of a name, over all token paths."""
    shell = _shell()
    with shell._one_line_errors(), shell._one_line_warnings():
        access, grammar = _may_say(role, catalog, dialect)
        vocab = shell._vocab(tokenizer)
        if artifact is None:
            with shell._progress_bar() as progress:
                compiled = compile(grammar, vocab, progress=progress)
        else:
            compiled = load(artifact, vocab)
            expected = compile(grammar, vocab, mode="lazy").grammar_fingerprint
            if compiled.grammar_fingerprint != expected:
                raise ArtifactError(
                    f"{artifact}: artifact is of grammar {compiled.grammar_fingerprint[:12]}, this dialect, role and "
                    f"catalog make {expected[:12]}; compile it again"
                )
        found = probe(access, compiled, vocab)
    report = {
        "pairs": len(found.pairs),
        "spellings": found.tried,
        "bypasses": [asdict(bypass) for bypass in found.bypasses],
        "silent": found.silent,
    }
    _print(report, as_json)
    if found.bypasses or found.silent:
        raise typer.Exit(1)


def _print(report: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(report, indent=2))
        return
    for key, value in report.items():
        shown = f"{value:,}" if isinstance(value, int) else value
        if isinstance(value, list):
            shown = "".join(f"\n  {item}" for item in value) or "none"
        print(f"{key.replace('_', ' ')}: {shown}")
