"""Roles: reading them, resolving them, and what they leave of the dialect."""

from __future__ import annotations

from pathlib import Path

import pytest
from sql_support import accepts, database, matcher

import glrgrid as gg
from glrgrid.errors import PolicyError
from glrgrid.sql import Access, Catalog, Dialect, Grant, Role

SQLITE = Dialect.load("sqlite")
SHOP = Catalog.from_sqlite(database())
CLERK = """\
name = "clerk"
verbs = ["select", "insert", "update"]
functions = ["count", "sum"]
deny = ["recursive_cte"]
row_limit = 50

[tables]
customers = ["id", "name"]
salaries = []

[tables.orders]
select = "*"
insert = ["customer_id", "total"]
update = ["total"]
delete = true
"""


def rules(role: Role) -> set[str]:
    return {n.name for n in role.project(SQLITE).nonterminals}


def test_toml_says_the_same_as_python(tmp_path: Path) -> None:
    orders = Grant("*", ("customer_id", "total"), ("total",), delete=True)
    role = Role(
        "clerk",
        {"Customers": ["id", "name"], "orders": orders, "salaries": ()},
        ["update", "select", "insert"],
        ["sum", "count"],
        ["recursive_cte"],
        50,
    )
    path = tmp_path / "clerk.toml"
    path.write_text(CLERK)
    assert Role.from_toml(CLERK) == Role.from_toml(path) == role
    assert hash(role) == hash(Role.from_toml(path))
    assert role.grant("ORDERS") == Grant("*", ("customer_id", "total"), ("total",), delete=False), (
        "no such verb"
    )
    assert role.grant("customers") == Grant(("id", "name"), ("id", "name"), ("id", "name"))
    assert role.grant("items") == Grant()


def test_fingerprints_tell_roles_apart_but_not_names() -> None:
    role = Role("a", {"t": "*"})
    assert Role("b", {"T": "*"}).fingerprint == role.fingerprint
    others = [Role("a", {"t": ["x"]}), Role("a", {"t": "*"}, ["insert"]), Role("a", {"t": "*"}, functions=[]),
              Role("a", {"t": "*"}, deny=["cte"]), Role("a", {"t": "*"}, row_limit=1),
              Role("a", {"t": "*"}, implicit_columns=True)]  # fmt: skip
    assert len({r.fingerprint for r in (role, *others)}) == 7


def test_select_only_cannot_reach_changes() -> None:
    left = rules(Role("reader", {"orders": "*"}))
    assert "query" in left and "with" in left
    for rule in (
        "insert",
        "update",
        "delete",
        "insert_body",
        "upsert",
        "assignments",
        "returning",
        "deleted",
    ):
        assert rule not in left
    assert "query" in rules(Role("writer", {"orders": "*"}, ["insert"])), "INSERT has a query"
    assert "statement" in rules(Role.admin())


def test_terminals_stay() -> None:
    """The part cuts bytes as the whole does: every terminal of the dialect is still there, in order."""
    role = Role("reader", {"orders": "*"}, deny=["cte", "window"])
    assert role.project(SQLITE).terminals == SQLITE.ir.terminals
    ir = gg.Grammar.from_sql("sqlite", role, SHOP).ir
    names = [t.name for t in SQLITE.ir.terminals]
    assert [t.name for t in ir.terminals[: len(names)]] == names
    changed = {a.name for a, b in zip(SQLITE.ir.terminals, ir.terminals, strict=False) if a.expr != b.expr}
    assert not changed


@pytest.mark.parametrize("clause", SQLITE.rules["clauses"])
def test_clauses_can_be_denied(clause: str) -> None:
    """What a clause stands for is refused, and little else."""
    examples = {
        "aggregate_filter": "SELECT count(*) FILTER (WHERE total > 1) FROM orders",
        "case": "SELECT CASE WHEN 1 THEN 2 END",
        "cast": "SELECT CAST(1 AS text)",
        "collate": "SELECT 'a' COLLATE nocase",
        "cte": "WITH x AS (SELECT 1) SELECT * FROM x",
        "exists": "SELECT EXISTS (SELECT 1)",
        "group_by": "SELECT 1 FROM orders GROUP BY id",
        "having": "SELECT count(*) FROM orders HAVING 1",
        "join": "SELECT 1 FROM orders, items",
        "natural_join": "SELECT 1 FROM orders NATURAL JOIN items",
        "order_by": "SELECT id FROM orders ORDER BY id",
        "outer_join": "SELECT 1 FROM orders LEFT JOIN items ON 1",
        "parameter": "SELECT ?",
        "recursive_cte": "WITH RECURSIVE x AS (SELECT 1) SELECT * FROM x",
        "replace": "INSERT OR REPLACE INTO orders(id) VALUES (1)",
        "returning": "DELETE FROM orders RETURNING id",
        "row_value": "SELECT (1, 2) = (3, 4)",
        "set_operation": "SELECT 1 UNION SELECT 2",
        "star": "SELECT * FROM orders",
        "subquery": "SELECT (SELECT 1)",
        "table_function": "SELECT value FROM json_each('[]')",
        "update_from": "UPDATE orders SET total = 1 FROM items",
        "upsert": "INSERT INTO orders(id) VALUES (1) ON CONFLICT DO NOTHING",
        "values": "VALUES (1)",
        "window": "SELECT rank() OVER (ORDER BY id) FROM orders",
    }
    admin = Role("admin", {"*": "*"}, ["select", "insert", "update", "delete"], deny=[clause])
    denied = matcher(gg.Grammar(admin.project(SQLITE)))
    kept = 0
    for name, statement in examples.items():
        if name == clause:
            assert not accepts(denied, statement)
        kept += accepts(denied, statement)
    assert kept >= len(examples) - 5


def test_without_ctes_tables_are_those_there_are() -> None:
    """FROM takes a binder for what a WITH may have declared; where none may, every name is one of the catalog."""
    statements = ("SELECT 1 FROM unheard", "SELECT 1 FROM orders, ord", "SELECT 1 IN unheard")
    for deny, accepted in (((), True), (("cte",), False)):
        m = matcher(gg.Grammar.from_sql("sqlite", Role("r", {"*": "*"}, deny=deny), SHOP))
        assert [accepts(m, statement) for statement in statements] == [accepted] * 3
        assert accepts(m, "SELECT x.id FROM orders AS x, items WHERE 1 IN items")


def test_row_limit() -> None:
    m = matcher(gg.Grammar.from_sql("sqlite", Role("r", {"orders": "*"}, row_limit=250), SHOP))
    for limit in ("0", "1", "9", "10", "99", "100", "199", "200", "249", "250"):
        assert accepts(m, f"SELECT id FROM orders UNION SELECT 2 ORDER BY 1 LIMIT {limit} OFFSET 900")
    for limit in (
        "251",
        "260",
        "300",
        "999",
        "1000",
        "-1",
        "1e3",
        "0x1",
        "1+1",
        "'1'",
        "007",
        "?",
        "10, 20",
        "(1)",
    ):
        assert not accepts(m, f"SELECT id FROM orders LIMIT {limit}")
    assert not accepts(m, "SELECT id FROM orders")
    assert not accepts(m, "VALUES (1)")
    assert accepts(m, "SELECT id FROM orders WHERE id IN (SELECT 1 LIMIT 9999) AND 9999 LIMIT 7")


def test_grants_by_verb() -> None:
    m = matcher(gg.Grammar.from_sql("sqlite", Role.from_toml(CLERK), SHOP))
    assert accepts(m, "SELECT o.id, orders.total, customers.name FROM orders o, customers LIMIT 5")
    assert accepts(m, "INSERT INTO orders (customer_id, TOTAL) VALUES (1, 2)")
    assert accepts(
        m, "INSERT INTO main.orders (total) SELECT sum(total) FROM orders WHERE 1 ON CONFLICT DO NOTHING"
    )
    assert accepts(
        m, "INSERT INTO orders (total) VALUES (1) ON CONFLICT (id) DO UPDATE SET total = excluded.total"
    )
    assert accepts(m, "UPDATE orders SET total = 2 WHERE id = 1")
    assert accepts(m, "INSERT INTO customers (id, name) VALUES (1, 'x')")
    for statement in (
        "INSERT INTO orders VALUES (1, 2, 3)",
        "INSERT INTO orders (id) VALUES (1)",
        "INSERT INTO orders (total) VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 2",
        "UPDATE orders SET customer_id = 2",
        "UPDATE orders SET (total, id) = (1, 2)",
        "UPDATE customers SET total = 2",
        "UPDATE customers SET id = 2 RETURNING id",
        "DELETE FROM orders",
        "REPLACE INTO orders (total) VALUES (1)",
        "UPDATE OR REPLACE orders SET total = 2",
        "INSERT INTO salaries (id) VALUES (1)",
        "SELECT * FROM orders LIMIT 1",
        "SELECT avg(total) FROM orders LIMIT 1",
        "WITH RECURSIVE c AS (SELECT 1) SELECT 1 FROM c LIMIT 1",
    ):
        assert not accepts(m, statement), statement


def test_access_resolves_names() -> None:
    access = Access.of(Role.from_toml(CLERK), SHOP, SQLITE)
    orders, customers = access.find("Orders"), access.find("customers", "main")
    assert orders is not None and customers is not None and access.find("nothing") is None
    assert not orders.hides and customers.hides and access.hides_columns
    assert customers.select == {"id", "name"} and orders.insert == {"customer_id", "total"}
    assert {"card number", "amount", "rowid", "city"} <= access.hidden_columns
    assert {"salaries", "items", "card number", "rowid", "sqlite_stmt"} <= access.hidden_names
    assert access.hidden_names.isdisjoint({"id", "orders", "total", "customers"})
    assert access.functions == {"count", "sum"}


def test_functions_of_the_application() -> None:
    """Those of the connection can be granted; elsewhere the catalog is told of them."""
    connection = database()
    connection.create_function("Score", 1, lambda value: value)
    read = Catalog.from_sqlite(connection)
    assert read.functions == ("score",) and SHOP.functions == ()
    told = Catalog.from_dict({**SHOP.to_dict(), "functions": ["Score"]})
    for catalog in (read, told):
        role = Role("r", {"orders": "*"}, functions=["SCORE", "json_each", "pragma_table_info"])
        m = matcher(gg.Grammar.from_sql("sqlite", role, catalog))
        assert accepts(m, "SELECT score(total) FROM orders, json_each('[]')") and not accepts(
            m, "SELECT count(*)"
        )
        m = matcher(gg.Grammar.from_sql("sqlite", Role("r", {"orders": "*"}), catalog))
        assert not accepts(m, "SELECT score(total) FROM orders") and not accepts(m, "SELECT 1 AS score")


def test_implicit_columns_of_tables_that_hide_none() -> None:
    """A rowid can be the value of a hidden column, so it goes with all of them."""
    catalog = Catalog.from_ddl("CREATE TABLE t (id INTEGER PRIMARY KEY, x); CREATE TABLE u (a)")
    m = matcher(
        gg.Grammar.from_sql("sqlite", Role("r", {"t": ["x"], "u": "*"}, implicit_columns=True), catalog)
    )
    assert accepts(m, "SELECT u.rowid, u._ROWID_, x FROM u, t") and not accepts(m, "SELECT t.rowid FROM t")


def test_fingerprint_of_the_three() -> None:
    role, other = Role("r", {"orders": "*"}), Role("r", {"items": "*"})
    catalog = Catalog(SHOP.tables[:-1])
    made = [Access.of(r, c, SQLITE).fingerprint for r in (role, other) for c in (SHOP, catalog)]
    assert len(set(made)) == 4 and Access.of(role, SHOP, SQLITE).fingerprint == made[0]
    again = [gg.Grammar.from_sql("sqlite", role, SHOP).fingerprint for _ in range(2)]
    assert again[0] == again[1] != gg.Grammar.from_sql("sqlite", other, SHOP).fingerprint


def test_two_schemas_with_one_name_are_refused() -> None:
    connection = database("CREATE TABLE t (a); CREATE TEMP TABLE t (a, b); CREATE TABLE u (a);")
    catalog = Catalog.from_sqlite(connection)
    with pytest.raises(PolicyError, match='may use relation "t", a name that several schemas have'):
        gg.Grammar.from_sql("sqlite", Role("r", {"t": "*"}), catalog)
    m = matcher(gg.Grammar.from_sql("sqlite", Role("r", {"u": "*"}), catalog))
    assert accepts(m, "SELECT a FROM u") and not accepts(m, "SELECT a FROM t")


def test_attached_schemas() -> None:
    connection = database("ATTACH ':memory:' AS other; CREATE TABLE other.t (a, b); CREATE TABLE u (a);")
    role = Role("r", {"other.T": ["a"]})
    m = matcher(gg.Grammar.from_sql("sqlite", role, Catalog.from_sqlite(connection)))
    for statement in ("SELECT a FROM other.t", "SELECT other.t.a FROM t", 'SELECT t.a FROM "Other".t'):
        assert accepts(m, statement)
    for statement in (
        "SELECT a FROM main.t",
        "SELECT other.t.b FROM t",
        "SELECT a FROM u",
        "SELECT a FROM other.u",
    ):
        assert not accepts(m, statement)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Role("r", {"t": "*"}, verbs=["drop"]), "verbs are ['drop']; expected some of select"),
        (lambda: Role("r", {"t": "*"}, verbs=[]), "verbs are []"),
        (lambda: Role("r", {"t": "*"}, verbs="select"), "verbs: expected a list of names"),
        (lambda: Role("r", {"t": "*", "T": "*"}), "a table is listed twice"),
        (lambda: Role("r", {"t": "*"}, row_limit=0), "row_limit is 0"),
        (lambda: Role("r", {"t": "*"}, row_limit=True), "row_limit is True"),
        (
            lambda: Role("r", {"t": "id"}),
            'role "r": table "t": grant: expected a list of names, found \'id\'; write "*" for all columns',
        ),
        (lambda: Role("r", {"t": 5}), 'role "r": table "t": grant: expected a list of names, found 5'),
        (lambda: Role("r", {"t": [""]}), 'role "r": table "t": grant: expected a list of names'),
        (lambda: Role("r", ["t"]), "tables are no table of names and grants"),  # type: ignore[arg-type]
        (lambda: Role("", {"t": "*"}), "role: name is ''; expected a text"),
        (lambda: Role.from_toml('name = 3\n[tables]\nt = "*"'), "role: name is 3; expected a text"),
        (
            lambda: Role.from_toml('name = "r"\nimplicit_columns = "no"\n[tables]\nt = "*"'),
            "role \"r\": implicit_columns is 'no'; expected true or false",
        ),
        (
            lambda: Role.from_toml('name = "r"\ndeny = "cte"\n[tables]\nt = "*"'),
            'role "r": deny: expected a list',
        ),
        (
            lambda: Role.from_toml('name = "r"\n[tables.t]\nselect = "id"'),
            "role: table \"t\": grant: select: expected a list of names, found 'id'",
        ),
        (lambda: Role.from_toml('name = "r"\n[tables.t]\ndelete = 1'), 'role: table "t": grant: delete is 1'),
        (lambda: Grant(delete="yes"), "delete is 'yes'"),  # type: ignore[arg-type]
        (lambda: Role.from_toml("name = 1 2"), "cannot read the TOML"),
        (lambda: Role.from_toml("missing.toml"), "cannot read the TOML"),
        (lambda: Role.from_toml('name = "r"\n'), "key 'tables' is unknown or missing"),
        (lambda: Role.from_toml('name = "r"\nverb = []\n[tables]\nt = "*"'), "key 'verb' is unknown"),
        (lambda: Role.from_toml('name = "r"\n[tables.main.t]\nselect = "*"'), 'unknown key "t"'),
        (
            lambda: Role("r", {"t": "*"}, deny=["joins"]).project(SQLITE),
            'denies unknown clause "joins"; there are: ',
        ),
        (lambda: Access.of(Role("r", {"order": "*"}), SHOP, SQLITE), 'does not have; closest: "orders"'),
        (
            lambda: Access.of(Role("r", {"zebras": "*"}), SHOP, SQLITE),
            'role "r" grants table "zebras", which the catalog does not have; there are: "big_orders", "customers"',
        ),
        (
            lambda: Access.of(Role("r", {"orders": ["totals"]}), SHOP, SQLITE),
            'none of that name; closest: "total"',
        ),
        (
            lambda: Access.of(Role("r", {"items": Grant(update=("zebra",))}, ["update"]), SHOP, SQLITE),
            '"items", which has none of that name; there are: "order_id", "price", "product", "quantity"',
        ),
        (
            lambda: Access.of(Role("r", {"orders": "*"}, functions=["Cuont"]), SHOP, SQLITE),
            'role "r" grants function "cuont", which neither SQL dialect "sqlite" (3.40.1) nor the catalog has; '
            'closest: "count"',
        ),
        (
            lambda: gg.Grammar.from_sql("sqlite", Role("r", {}, ["update"]), SHOP),
            "leaves no statement at all",
        ),
        (
            lambda: gg.Grammar.from_sql("sqlite", Role("r", {"orders": []}, ["delete"]), SHOP),
            "leaves no statement",
        ),
    ],
)
def test_refusals(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(PolicyError) as error:
        make()
    assert message in str(error.value)
