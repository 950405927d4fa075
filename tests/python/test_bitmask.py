"""Packed bitmasks and their application to logits."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from glrgrid.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace
from glrgrid.errors import StateError

DTYPES = [np.float16, np.float32, np.float64]


def random_case(
    rows: int, width: int, words: int
) -> tuple[Any, npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """Logits, a bitmask, and which logits it allows, bit by bit."""
    source = np.random.default_rng(rows * 1000 + width)
    logits = source.standard_normal((rows, width))
    bitmask = source.integers(-(2**31), 2**31, (rows, words), dtype=np.int64).astype(np.int32)
    allowed = np.array(
        [[bool(int(row[t // 32]) >> (t % 32) & 1) for t in range(width)] for row in bitmask], dtype=bool
    )
    return logits, bitmask, allowed.reshape(rows, width)


def masked(logits: npt.NDArray[Any], allowed: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    return np.where(allowed, logits, -np.inf).astype(logits.dtype)


@pytest.mark.parametrize(("size", "words"), [(1, 1), (31, 1), (32, 1), (33, 2), (8000, 250), (128256, 4008)])
def test_allocate(size: int, words: int) -> None:
    bitmask = allocate_token_bitmask(3, size)
    assert bitmask.shape == (3, words)
    assert bitmask.dtype == np.int32
    assert bitmask.flags.c_contiguous
    assert (bitmask == -1).all()


@pytest.mark.parametrize(("batch", "size"), [(-1, 8), (1, 0), (1, -5), (1.0, 8), (1, "8"), (True, 8)])
def test_allocate_refuses(batch: Any, size: Any) -> None:
    with pytest.raises(StateError, match="must be an integer of at least"):
        allocate_token_bitmask(batch, size)


def test_a_fresh_bitmask_allows_everything() -> None:
    logits = np.zeros((2, 33), dtype=np.float32)
    apply_token_bitmask_inplace(logits, allocate_token_bitmask(2, 33))
    assert (logits == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("rows", "width", "words"), [(1, 1, 1), (2, 32, 1), (3, 33, 2), (4, 100, 4), (2, 160, 5), (0, 7, 1)]
)
def test_apply(dtype: Any, rows: int, width: int, words: int) -> None:
    logits, bitmask, allowed = random_case(rows, width, words)
    logits = logits.astype(dtype)
    wanted, before = masked(logits, allowed), bitmask.copy()
    apply_token_bitmask_inplace(logits, bitmask)
    np.testing.assert_array_equal(logits, wanted)
    np.testing.assert_array_equal(bitmask, before)


def test_apply_to_one_row() -> None:
    logits, bitmask, allowed = random_case(1, 70, 3)
    for bits in (bitmask, bitmask[0]):
        row = logits[0].copy()
        apply_token_bitmask_inplace(row, bits)
        np.testing.assert_array_equal(row, masked(logits, allowed)[0])
    rows = logits.copy()
    apply_token_bitmask_inplace(rows, bitmask[0])
    np.testing.assert_array_equal(rows, masked(logits, allowed))


def test_apply_to_views() -> None:
    logits, bitmask, allowed = random_case(4, 64, 2)
    storage = np.zeros((4, 128))
    storage[:, ::2] = logits
    wide = np.zeros((8, 2), dtype=np.int32)
    wide[::2] = bitmask
    apply_token_bitmask_inplace(storage[:, ::2], wide[::2])
    np.testing.assert_array_equal(storage[:, ::2], masked(logits, allowed))
    assert (storage[:, 1::2] == 0).all()

    transposed = np.asfortranarray(logits)
    apply_token_bitmask_inplace(transposed, np.asfortranarray(bitmask))
    np.testing.assert_array_equal(transposed, masked(logits, allowed))


def test_logits_beyond_the_vocabulary_are_masked() -> None:
    bitmask = np.array([[0b111]], dtype=np.int32)  # a full row over three ids
    logits = np.zeros((1, 32), dtype=np.float32)
    apply_token_bitmask_inplace(logits, bitmask)
    assert (logits[0, :3] == 0).all() and (logits[0, 3:] == -np.inf).all()


@pytest.mark.parametrize("indices", [[2, 0], (1,), [], np.array([0, 2]), range(3), [1, 1]])
def test_indices_choose_rows_of_both(indices: Any) -> None:
    logits, bitmask, allowed = random_case(3, 50, 2)
    wanted = logits.copy()
    for row in indices:
        wanted[row] = masked(logits, allowed)[row]
    longer = np.vstack([logits, logits[:1]])
    apply_token_bitmask_inplace(longer, bitmask, indices)
    np.testing.assert_array_equal(longer[:3], wanted)
    np.testing.assert_array_equal(longer[3], logits[0])


@pytest.mark.parametrize("index", [-1, 2, 1.0, "0", None, True])
def test_indices_out_of_range(index: Any) -> None:
    logits = np.zeros((3, 8))
    with pytest.raises(StateError, match="indices holds"):
        apply_token_bitmask_inplace(logits, np.zeros((2, 1), dtype=np.int32), [0, index])
    assert (logits == 0).all()


def zeros(*shape: int, dtype: Any = np.int32) -> npt.NDArray[Any]:
    return np.zeros(shape, dtype=dtype)


@pytest.mark.parametrize(
    ("logits", "bitmask", "message"),
    [
        (
            zeros(2, 33, dtype=float),
            zeros(2, 1),
            r"logits are 33 wide but the bitmask covers 1 to 32 ids \(1 words\).*size=33",
        ),
        (zeros(2, 32, dtype=float), zeros(2, 2), r"32 wide but the bitmask covers 33 to 64 ids \(2 words\)"),
        (zeros(2, 8, dtype=float), zeros(3, 1), "logits have 2 rows and the bitmask has 3"),
        (zeros(2, 8, dtype=float), zeros(1), "logits have 2 rows and the bitmask has 1"),
        (zeros(8, dtype=float), zeros(2, 1), "logits have 1 rows and the bitmask has 2"),
        (zeros(1, 8), zeros(1, 1), "dtype int32, expected .* of a floating dtype"),
        (zeros(1, 8, dtype=complex), zeros(1, 1), "of a floating dtype"),
        (zeros(1, 1, 8, dtype=float), zeros(1, 1), r"shape \(1, 1, 8\)"),
        (np.float64(1.0), zeros(1, 1), "logits must be a numpy array or a CPU torch tensor, found float64"),
        ([0.0, 0.0], zeros(1, 1), "logits must be a numpy array or a CPU torch tensor, found list"),
        (zeros(1, 8, dtype=float), [[1]], "bitmask must be a numpy array or a CPU torch tensor, found list"),
        (zeros(1, 8, dtype=float), zeros(1, 1, dtype=np.int64), "dtype int64, expected .* int32"),
        (zeros(1, 8, dtype=float), zeros(1, 1, dtype=np.uint32), "dtype uint32, expected .* int32"),
        (zeros(1, 8, dtype=float), zeros(1, 8, dtype=bool), "dtype bool, expected .* int32"),
        (zeros(1, 8, dtype=float), zeros(1, 1, 1), r"bitmask has shape \(1, 1, 1\)"),
    ],
)
def test_what_does_not_fit_is_refused(logits: Any, bitmask: Any, message: str) -> None:
    before = np.array(logits)
    with pytest.raises(StateError, match=message):
        apply_token_bitmask_inplace(logits, bitmask)
    np.testing.assert_array_equal(np.array(logits), before)


def test_read_only_logits() -> None:
    logits = np.zeros((1, 8))
    logits.flags.writeable = False
    with pytest.raises(StateError, match="read-only"):
        apply_token_bitmask_inplace(logits, zeros(1, 1))


def test_torch_is_not_imported_for_numpy() -> None:
    known = "torch" in sys.modules
    apply_token_bitmask_inplace(np.zeros((1, 8)), zeros(1, 1))
    assert ("torch" in sys.modules) == known


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_torch_tensors(name: str) -> None:
    torch = pytest.importorskip("torch")
    array, bitmask, allowed = random_case(3, 70, 3)
    original = torch.tensor(array.tolist(), dtype=getattr(torch, name))
    wanted = original.masked_fill(torch.tensor((~allowed).tolist()), -float("inf"))

    for bits in (bitmask, torch.tensor(bitmask.tolist(), dtype=torch.int32)):
        logits = original.clone()
        apply_token_bitmask_inplace(logits, bits)
        assert torch.equal(logits, wanted)

        logits = original.clone().requires_grad_()
        apply_token_bitmask_inplace(logits, bits, [2])
        assert torch.equal(logits[2], wanted[2])
        assert torch.equal(logits[:2], original[:2])

        row = original[1].clone()
        apply_token_bitmask_inplace(row, bits[1])
        assert torch.equal(row, wanted[1])


def test_torch_refusals() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(StateError, match="on device meta, expected cpu"):
        apply_token_bitmask_inplace(torch.zeros(1, 8, device="meta"), zeros(1, 1))
    with pytest.raises(StateError, match="of a floating dtype"):
        apply_token_bitmask_inplace(torch.zeros(1, 8, dtype=torch.int64), zeros(1, 1))
    with pytest.raises(StateError, match="dtype int64, expected"):
        apply_token_bitmask_inplace(torch.zeros(1, 8), torch.zeros(1, 1, dtype=torch.int64))
