"""Dialects of SQL as data: a grammar and its lexical rules each."""
