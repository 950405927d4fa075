"""Data files that ship with the package.

``default.tokenizer.json`` is written by ``tools/train_default_vocab.py`` and is not edited by hand.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

__all__ = ["default_tokenizer_path"]


def default_tokenizer_path() -> Path:
    """Where the bundled ``tokenizer.json`` is installed."""
    return Path(str(files(__name__) / "default.tokenizer.json"))
