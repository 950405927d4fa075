"""``python -m glrgrid.demo``: decode SQL from a small model, with and without masks.

Compiles the bundled ``sql_core`` grammar for the bundled vocabulary, saves and loads the artifact, and
decodes statements from an n-gram model over token ids. Each statement is then judged by two parsers that
share no code with the engine. Needs the ``demo`` extra: ``tokenizers`` and ``sqlglot``.
"""
