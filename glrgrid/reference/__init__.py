"""The executable specification: trial lexing and parsing of every token, sharing only the grammar IR with the engine."""

