"""Catalogs: where they come from, what they refuse, that they are values."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from sql_support import SHOP, database

from glrgrid.errors import PolicyError
from glrgrid.sql import Catalog, Column, Table, fold

DDL = """\
CREATE TABLE a ("x y" INTEGER PRIMARY KEY, B varchar(10) NOT NULL DEFAULT 'q', CONSTRAINT u UNIQUE (B));
CREATE INDEX i ON a (B);
CREATE TABLE b (k TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE VIEW v AS SELECT B, 1 AS one FROM a;
"""


def test_fold_is_ascii_only() -> None:
    assert fold("Größe_ÄB") == "größe_Äb"


def test_from_sqlite_reads_tables_views_and_implicit_columns(tmp_path: Path) -> None:
    connection = database()
    connection.executescript(
        "CREATE TABLE w (k PRIMARY KEY, g AS (k + 1)) WITHOUT ROWID; CREATE VIRTUAL TABLE f USING fts5(body);"
    )
    connection.execute("CREATE TEMP TABLE scratch (x)")
    catalog = Catalog.from_sqlite(connection)
    by_name = {t.name: t for t in catalog.tables}
    assert {
        "customers",
        "orders",
        "items",
        "salaries",
        "key",
        "big_orders",
        "w",
        "f",
        "f_data",
    } <= by_name.keys()
    assert [c.name for c in by_name["customers"].columns] == ["id", "name", "city", "card number"]
    assert by_name["big_orders"].kind == "view" and not by_name["big_orders"].rowid
    assert not by_name["w"].rowid and by_name["orders"].rowid
    assert [(c.name, c.hidden) for c in by_name["w"].columns] == [("k", False), ("g", False)]
    assert by_name["f"].kind == "virtual"
    assert [c.name for c in by_name["f"].columns if c.hidden] == ["f", "rank"]
    assert by_name["scratch"].schema == "temp"
    assert "json_each" in catalog.modules
    path = tmp_path / "a b?.db"
    with sqlite3.connect(path) as file:
        file.executescript(SHOP)
    assert Catalog.from_sqlite(path).table("ORDERS") == catalog.table("orders")


def test_from_ddl() -> None:
    assert Catalog.from_ddl(DDL).tables == Catalog.from_sqlite(database(DDL)).tables
    catalog = Catalog.from_ddl(
        "CREATE TABLE s.t (a int, b varchar(3) REFERENCES u (c)); CREATE INDEX i ON s.t (a)", "postgres"
    )
    assert catalog.tables == (Table("t", (Column("a", "INT"), Column("b", "VARCHAR(3)")), "s", rowid=False),)


def test_from_rows() -> None:
    rows = [("t", "a", "int"), ("t", "b"), ("u", "a")]
    catalog = Catalog.from_rows(rows)
    assert catalog.tables == (Table("t", (Column("a", "int"), Column("b"))), Table("u", (Column("a"),)))
    named = [{"table_schema": "s", "table_name": "t", "column_name": "a", "data_type": "int"}]
    assert Catalog.from_rows(named).table("T", "S") == Table("t", (Column("a", "int"),), "s")


def test_values() -> None:
    catalog = Catalog.from_sqlite(database())
    again = Catalog.from_dict(json.loads(json.dumps(catalog.to_dict())))
    assert again == catalog and hash(again) == hash(catalog) and again.fingerprint == catalog.fingerprint
    assert Catalog.from_rows([("t", "a")]).fingerprint != Catalog.from_rows([("t", "A")]).fingerprint


def test_lookup_needs_the_schema_if_there_are_several() -> None:
    catalog = Catalog((Table("t", (Column("a"),)), Table("T", (Column("b"),), "temp")))
    assert catalog.table("t") is None
    assert catalog.table("T", "main") == catalog.tables[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Catalog((Table("t", ()), Table("T", ()))), 'two relations are called "main.T"'),
        (lambda: Catalog.from_rows([("t", "a"), ("t", "A")]), 'relation "t" has two columns of one name'),
        (lambda: Catalog.from_rows([("t", "")]), "'' in relation \"t\" cannot be a name"),
        (lambda: Catalog((Table("t", (), kind="x"),)), 'of unknown kind "x"'),
        (lambda: Catalog.from_ddl("CREATE TABLE t (a); ATTACH 'x' AS y"), "not authorized"),
        (lambda: Catalog.from_ddl("CREATE TABLE ((("), "cannot read the definitions"),
        (lambda: Catalog.from_ddl("CREATE VIEW v AS SELECT 1", "postgres"), 'columns of "CREATE VIEW v'),
        (lambda: Catalog.from_ddl("CREATE TABLE t AS SELECT 1", "postgres"), 'columns of "CREATE TABLE t'),
        (lambda: Catalog.from_ddl("SELECT 1", "postgres"), 'columns of "SELECT 1"'),
        (lambda: Catalog.from_ddl("CREATE TABLE (((", "postgres"), "cannot read the definitions"),
        (lambda: Catalog.from_ddl("CREATE TABLE t (a)", "no such"), "cannot read the definitions"),
        (lambda: Catalog.from_sqlite("/nowhere/at/all.db"), 'cannot read "/nowhere/at/all.db"'),
        (lambda: Catalog.from_dict({}), "not what Catalog.to_dict writes"),
    ],
)
def test_refusals(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(PolicyError, match="catalog: ") as error:
        make()
    assert message in str(error.value)
