"""The executable specification: trial lexing and parsing of every token.

It shares only the grammar IR with the engine; tests hold the one against the other.
"""
