"""Write the IR of the package's grammars to ``tests/corpus/ir``, for Rust tests, which cannot read Lark text.

python tools/write_ir.py
"""

from pathlib import Path

from glrgrid import Grammar, grammars

FOLDER = Path(__file__).parent.parent / "tests" / "corpus" / "ir"
NAMES = ("calc", "json", "script", "sql_core")


def ir_text(name: str) -> str:
    """The file of a grammar."""
    return Grammar.from_lark(grammars.load(name)).ir.to_json() + "\n"


if __name__ == "__main__":
    for name in NAMES:
        (FOLDER / f"{name}.json").write_text(ir_text(name), encoding="utf-8")
