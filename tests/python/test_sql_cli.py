"""``glrgrid sql``, from a database to a probed artifact."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from sql_support import SHOP
from typer.testing import CliRunner, Result

import glrgrid as gg
from glrgrid.cli import app

ROLE = """\
name = "analyst"
functions = ["count", "sum"]
[tables]
customers = ["id", "name"]
orders = "*"
"""


def run(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["sql", *map(str, arguments)], input=stdin)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.executescript(SHOP)
    connection.close()
    (tmp_path / "role.toml").write_text(ROLE)
    return tmp_path


def under_role(files: Path, catalog: str = "shop.db") -> list[object]:
    return ["--role", files / "role.toml", "--catalog", files / catalog]


def test_from_a_database_to_a_probed_artifact(files: Path) -> None:
    result = run("snapshot", files / "shop.db", "-o", files / "shop.json", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["relations"] == 7
    printed = run("snapshot", files / "shop.db").stdout
    assert printed == (files / "shop.json").read_text()

    artifact = files / "analyst.glrgrid"
    role = under_role(files, "shop.json")
    result = run("compile", *role, "-t", "default", "-o", artifact, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["artifact_bytes"] == artifact.stat().st_size
    matcher = gg.Matcher(gg.load(artifact, gg.Vocab.default()))
    assert matcher.accept_bytes(b"SELECT name FROM customers;") == 27 and matcher.is_accepting()

    result = run("probe", *role, "-t", "default", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["bypasses"] == report["silent"] == [] and report["pairs"] >= 60
    result = run("probe", *role, "-t", "default", "--artifact", artifact, "--json")
    assert result.exit_code == 0 and json.loads(result.stdout) == report, result.output

    other = files / "other.toml"
    other.write_text('name = "other"\n[tables]\ncustomers = "*"\n')
    result = run("probe", "--role", other, *role[2:], "-t", "default", "--artifact", artifact)
    assert result.exit_code == 1 and "artifact is of grammar" in result.stderr


def test_what_is_read_is_not_overwritten(files: Path) -> None:
    for name in ("role.toml", "shop.db"):
        before = (files / name).read_bytes()
        for arguments in (
            ["compile", *under_role(files), "-t", "default", "-o", files / name],
            ["snapshot", files / name, "-o", files / name],
        ):
            result = run(*arguments)
            assert result.exit_code == 1 and "is to be read; name another file" in result.stderr
            assert (files / name).read_bytes() == before


def test_check(files: Path) -> None:
    result = run("check", "-", *under_role(files), stdin="SELECT name FROM customers\n")
    assert (result.exit_code, result.stdout) == (0, "-: no violations\n")
    result = run(
        "check", "-", *under_role(files), "--json", stdin="SELECT o.id,\n c.city FROM customers c, orders o"
    )
    assert result.exit_code == 1
    [violation] = json.loads(result.stdout)["violations"]
    assert (violation["line"], violation["column"], violation["rule"]) == (2, 4, "column")
    assert violation["allowed"] == ["id", "name"]
    result = run("check", "-", *under_role(files), stdin="SELECT city FROM customers")
    assert (
        result.stdout == '-: line 1, column 8: "city" is no column that may be read here; allowed: id, name\n'
    )


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("no.json", None, "cannot be read"),
        ("a.json", b"{", "no catalog"),
        ("b.json", b"{}", "to_dict"),
        ("c.sql", b"CREATE TABL t", "definitions"),
        ("d.db", b"SQLite format 3\0junk", "cannot read"),
        ("e.sql", b"\xff", "no catalog"),
        ("f.sql", b"CREATE TABLE t (a)", "grants table"),
    ],
)
def test_refusals(files: Path, name: str, content: bytes | None, part: str) -> None:
    if content is not None:
        (files / name).write_bytes(content)
    result = run("check", "-", *under_role(files, name), stdin="SELECT 1")
    assert result.exit_code == 1 and result.stdout == ""
    assert result.stderr.startswith("error: ") and part in result.stderr
