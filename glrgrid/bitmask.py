"""Packed token bitmasks: making them and applying them to logits.

A row has ``ceil(size / 32)`` int32 words; bit ``t % 32`` of word ``t // 32`` says whether token id ``t`` is
allowed. This is the layout of XGrammar, llguidance and vLLM.

numpy arrays and CPU torch tensors are taken alike. torch is never imported: a tensor can only be passed if it
already was.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from .errors import StateError

__all__ = ["allocate_token_bitmask", "apply_token_bitmask_inplace"]


def allocate_token_bitmask(batch: int, size: int) -> npt.NDArray[np.int32]:
    """Make a bitmask that allows everything.

    Parameters
    ----------
    batch : int
        Number of rows, one per sequence.
    size : int
        Width of the logits, that is ``Vocab.size``.

    Returns
    -------
    numpy.ndarray
        ``(batch, ceil(size / 32))`` int32, C-contiguous, filled with -1. The bits at and beyond ``size`` in
        the last word are set too; filling a row clears them.

    Raises
    ------
    StateError
        ``batch`` is negative or ``size`` is not positive.

    Examples
    --------
    >>> allocate_token_bitmask(2, 33)
    array([[-1, -1],
           [-1, -1]], dtype=int32)
    """
    rows = _count(batch, "batch", 0)
    words = (_count(size, "size", 1) + 31) // 32
    return np.full((rows, words), -1, dtype=np.int32)


def apply_token_bitmask_inplace(logits: Any, bitmask: Any, indices: Iterable[int] | None = None) -> None:
    """Set the logits of disallowed tokens to minus infinity, in place.

    Parameters
    ----------
    logits : numpy.ndarray or CPU torch.Tensor
        ``(batch, width)`` or ``(width,)`` of a floating dtype. ``width`` must need as many words as the
        bitmask has, ``ceil(width / 32)``. Logits beyond the vocabulary are masked, since their bits are clear
        in every filled row; for a model whose logits are wider than its tokenizer, make the vocabulary as
        wide with ``Vocab.from_file(..., size=width)``.
    bitmask : numpy.ndarray or CPU torch.Tensor
        ``(batch, words)`` or ``(words,)`` int32. It need not be contiguous and is not changed.
    indices : iterable of int, optional
        Rows to apply: row ``i`` of the bitmask to row ``i`` of the logits, the other logits are left alone.
        The two may then have different numbers of rows. Default: all rows, of which both must have the same
        number.

    Raises
    ------
    StateError
        Types, dtypes or shapes do not fit, an index is out of range, or the logits cannot be written. Nothing
        was changed.

    Notes
    -----
    O(rows x width), and as many bytes of working memory.

    Examples
    --------
    >>> import numpy as np
    >>> logits = np.zeros(3, dtype=np.float32)
    >>> apply_token_bitmask_inplace(logits, np.array([0b101], dtype=np.int32))
    >>> logits
    array([  0., -inf,   0.], dtype=float32)
    """
    words = _bitmask_rows(bitmask)
    rows, tensor = _logits_rows(logits)
    height, width = rows.shape
    count = words.shape[1]
    if (width + 31) // 32 != count:
        raise StateError(
            f"logits are {width} wide but the bitmask covers {max(32 * count - 31, 0)} to {32 * count} ids "
            f"({count} words); both must be as wide as the vocabulary: where the model pads its logits, make "
            f"it with Vocab.from_file(..., size={width})"
        )
    if indices is None:
        if height != words.shape[0]:
            raise StateError(
                f"logits have {height} rows and the bitmask has {words.shape[0]}; pass one row for each, or "
                f"indices"
            )
        chosen = None
    else:
        chosen = _row_indices(indices, min(height, words.shape[0]))
        words = words[chosen]

    # The set bits of the inverted words are the tokens to mask, lowest id first on any machine.
    octets = np.ascontiguousarray(~words, dtype="<i4").view(np.uint8)
    banned = np.unpackbits(octets, axis=1, count=width, bitorder="little").view(np.bool_)
    if tensor:
        banned = sys.modules["torch"].from_numpy(banned)
    if chosen is None:
        _mask(rows, banned, tensor)
    else:
        for position, row in enumerate(chosen):
            _mask(rows[row], banned[position], tensor)


def _mask(logits: Any, banned: Any, tensor: bool) -> None:
    """Write minus infinity where ``banned`` is true."""
    if tensor:
        logits.masked_fill_(banned, -float("inf"))
    else:
        np.copyto(logits, -np.inf, where=banned)


def _bitmask_rows(bitmask: Any) -> npt.NDArray[np.int32]:
    """The bitmask as a two-dimensional int32 array."""
    if _is_tensor(bitmask):
        bitmask = _on_cpu(bitmask, "bitmask").numpy()
    if not isinstance(bitmask, np.ndarray):
        raise StateError(
            f"bitmask must be a numpy array or a CPU torch tensor, found {type(bitmask).__name__}"
        )
    if bitmask.dtype != np.int32 or bitmask.ndim not in (1, 2):
        raise StateError(
            f"bitmask has shape {bitmask.shape} and dtype {bitmask.dtype}, expected (batch, words) or "
            f"(words,) int32; see allocate_token_bitmask"
        )
    return np.atleast_2d(bitmask)


def _logits_rows(logits: Any) -> tuple[Any, bool]:
    """A writable two-dimensional view of the logits, and whether it is a torch tensor."""
    tensor = _is_tensor(logits)
    if tensor:
        view = _on_cpu(logits, "logits")
        floating = view.is_floating_point()
    elif isinstance(logits, np.ndarray):
        view = logits
        floating = np.issubdtype(logits.dtype, np.floating)
        if not logits.flags.writeable:
            raise StateError("logits are read-only; pass a writable array")
    else:
        raise StateError(f"logits must be a numpy array or a CPU torch tensor, found {type(logits).__name__}")
    if not floating or view.ndim not in (1, 2):
        raise StateError(
            f"logits have shape {tuple(view.shape)} and dtype {view.dtype}, expected (batch, width) or "
            f"(width,) of a floating dtype"
        )
    return (view if view.ndim == 2 else view[None]), tensor


def _row_indices(indices: Iterable[int], limit: int) -> list[int]:
    chosen = []
    for index in indices:
        if (
            isinstance(index, bool)
            or not isinstance(index, SupportsIndex)
            or not 0 <= operator.index(index) < limit
        ):
            raise StateError(
                f"indices holds {index!r}, expected rows from 0 to {limit - 1} of both logits and bitmask"
            )
        chosen.append(operator.index(index))
    return chosen


def _is_tensor(value: Any) -> bool:
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _on_cpu(tensor: Any, what: str) -> Any:
    """The tensor without its gradient, sharing its memory."""
    if tensor.device.type != "cpu":
        raise StateError(f"{what} are on device {tensor.device}, expected cpu; mask a copy made with .cpu()")
    return tensor.detach()


def _count(value: Any, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or operator.index(value) < least:
        raise StateError(f"{name} must be an integer of at least {least}, found {value!r}")
    return operator.index(value)
