"""Roles and catalogs compiled into the language of SQL: what a role may not name cannot be spelt.

:class:`Dialect` is a grammar with rules about its names, :class:`Role` says what may be done, :class:`Catalog` what
there is. :meth:`glrgrid.Grammar.from_sql` makes one grammar of the three.

What every text of that grammar keeps to:

1. It is one statement of a granted verb; no clause that is denied occurs anywhere in it.
2. FROM and IN name readable relations or *binders*, which are names that no relation, schema, function, or column
   hidden somewhere has; what is inserted into, updated or deleted from is a relation with that grant.
3. No name of a hidden relation, nor of a column that is readable nowhere, stands in any position of a name, in any
   spelling; a double-quoted text that could be taken for such a column does not occur.
4. After the name of a relation and a dot stands a column of it that may be read. Columns that are inserted or assigned
   are granted for the table that is changed.
5. ``*``, ``t.*``, NATURAL and IN with a table do not occur if a relation within reach has a hidden column; RETURNING
   does not if a relation that may be changed has one.
6. Only granted functions are called, by operators too.

What no grammar read from left to right can tell: to which relation a bare column, or one behind an alias, belongs. If
a name is readable in one relation and hidden in another, the finished statement has to be checked. Nor does it see
through views and triggers, which the database runs with rights of their own, and it is right for the database that the
catalog describes: relations that were created later are new names to it.
"""

from .access import Access, TableAccess
from .catalog import Catalog, Column, Table, fold
from .checker import SemanticChecker, Violation, repair
from .dialect import Dialect
from .role import Grant, Role

__all__ = [
    "Access", "Catalog", "Column", "Dialect", "Grant", "Role", "SemanticChecker", "Table", "TableAccess", "Violation",
    "fold", "repair",
]  # fmt: skip
