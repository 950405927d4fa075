"""tiktoken rank files: one token a line, its bytes in base64 and its id.

The files say nothing of special tokens, which tiktoken adds by the name of the encoding.
"""

from __future__ import annotations

from binascii import Error, a2b_base64
from io import BytesIO

from ..errors import VocabError
from .table import MAX_IDS, Table

__all__ = ["read"]


def read(raw: bytes, where: str) -> Table:
    """Read the lines of a rank file."""
    table = Table(where)
    pieces, owner = table.pieces, dict[bytes, int]()
    for number, line in enumerate(BytesIO(raw), 1):
        parts = line.split()
        if not parts:
            continue
        if len(parts) != 2 or not parts[1].isdigit():
            raise _bad_line(where, number, "expected the base64 of a token, a space and its id", line)
        try:
            token = a2b_base64(parts[0], strict_mode=True)
        except Error as error:
            raise _bad_line(where, number, f"not valid base64 ({error})", line) from error
        if len(parts[1]) > 10 or (token_id := int(parts[1])) >= MAX_IDS:
            raise _bad_line(where, number, f"an id is an integer from 0 to {MAX_IDS - 1}", line)
        if token_id in pieces:
            raise _bad_line(where, number, f"id {token_id} has a token already", line)
        if token in owner:
            raise _bad_line(where, number, f"its token has id {owner[token]} already", line)
        pieces[token_id] = token
        owner[token] = token_id
    return table


def _bad_line(where: str, number: int, problem: str, line: bytes) -> VocabError:
    shown = line[:60].strip().decode("ascii", "backslashreplace")
    return VocabError(
        f"{where}: line {number}: {problem}; found {shown!r}; the file is damaged or of another kind"
    )
