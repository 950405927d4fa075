"""Roles and catalogs compiled into the language of SQL: what a role may not name cannot be spelt.

:class:`Dialect` is a grammar with rules about its names, :class:`Role` says what may be done, :class:`Catalog` what there
is. :meth:`glrgrid.Grammar.from_sql` makes one grammar of the three.
"""

from .access import Access, TableAccess
from .catalog import Catalog, Column, Table, fold
from .dialect import Dialect
from .role import Grant, Role

__all__ = ["Access", "Catalog", "Column", "Dialect", "Grant", "Role", "Table", "TableAccess", "fold"]
