"""Damaged tokenizer files: whatever is changed in one, it loads or raises VocabError, soon and in little memory."""

from __future__ import annotations

import copy
import json
import os
import random
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizer_files import every_format

from glrgrid import Vocab, VocabError

SECONDS = float(os.environ.get("GLRGRID_FUZZ_SECONDS", "40")) / 20
"""For each format and kind of damage. The default takes about half a minute in all."""

FORMATS = every_format()

MAX_SECONDS = 5.0
MAX_BYTES = 200 << 20  # two million ids, the most that are allowed, take about half of it

pytestmark = pytest.mark.filterwarnings("ignore::glrgrid.vocab.VocabWarning")

NUMBERS = [0, -1, 1, 2**7, 2**21 - 1, 2**21, 2**31, 2**32 - 1, 2**63, 2**64 - 1]
VALUES = [
    None,
    True,
    -1,
    0,
    1.5,
    2**21,
    10**40,
    float("inf"),
    "",
    "a",
    "</s>",
    "\ud800",
    "▁",
    [],
    [[]],
    {},
    {"a": 1},
]


def damage_bytes(source: random.Random, raw: bytes) -> bytes:
    """Flip, cut, repeat, drop, swap, or overwrite with an extreme number."""
    data = bytearray(raw)
    for _ in range(source.choice((1, 1, 2, 5))):
        at = source.randrange(len(data) + 1)
        end = min(len(data), at + source.choice((1, 2, 8, 50)))
        match source.randrange(7):
            case 0 if at < len(data):
                data[at] ^= 1 << source.randrange(8)
            case 1:
                del data[at:]
            case 2:
                del data[at:end]
            case 3:
                data[at:at] = data[at:end] * source.choice((1, 2, 30))
            case 4:
                data[at:at] = source.randbytes(source.randrange(1, 9))
            case 5:
                data[at : at + 8] = (source.choice(NUMBERS) % 2**64).to_bytes(
                    8, source.choice(("little", "big"))
                )
            case _:
                data[at:end] = source.choice((b"\xff", b"0", b"9", b'"', b"\n", b"\0")) * (end - at)
    return bytes(data)


def damage_json(source: random.Random, raw: bytes) -> bytes:
    """Replace, remove or move values of a JSON document."""
    document = json.loads(raw)
    for _ in range(source.choice((1, 1, 2, 4))):
        places = list(places_in(document))
        holder, key = source.choice(places)
        other, other_key = source.choice(places)
        match source.randrange(4):
            case 0:
                del holder[key]
            case 1:
                holder[key] = copy.deepcopy(other[other_key])
            case 2 if isinstance(holder, list):
                holder.insert(key, copy.deepcopy(source.choice(VALUES)))
            case _:
                holder[key] = copy.deepcopy(source.choice(VALUES))
        if not document:
            break
    return json.dumps(document).encode()


def places_in(value: Any) -> Any:
    """Every container and key of a document."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places_in(value[key])


def saved_vocab(folder: Path) -> bytes:
    (folder / "x.json").write_bytes(FORMATS["metaspace.json"])
    Vocab.from_file(folder / "x.json").save(folder / "x.vocab")
    return (folder / "x.vocab").read_bytes()


def fuzz(
    path: Path,
    raw: bytes,
    damage: Callable[[random.Random, bytes], bytes],
    seed: str,
    always_refused: bool = False,
) -> None:
    deadline, number, refused = time.monotonic() + SECONDS, 0, 0
    while time.monotonic() < deadline or number < 50:
        number += 1
        damaged = damage(random.Random(f"{seed} {number}"), raw)
        path.unlink(missing_ok=True)  # an old one may still be mapped
        path.write_bytes(damaged)
        started = time.monotonic()
        tracemalloc.start()
        try:
            Vocab.from_file(path)
        except VocabError as error:
            refused += 1
            assert str(error)
        except BaseException as error:
            raise AssertionError(f"{seed} {number}: {error!r}") from error
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert time.monotonic() - started < MAX_SECONDS, f"{seed} {number}"
        assert peak < MAX_BYTES, f"{seed} {number}: {peak:,} bytes"
    assert refused > 0 and (refused < number or always_refused)


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_bytes(name: str, tmp_path: Path) -> None:
    fuzz(tmp_path / name, FORMATS[name], damage_bytes, f"bytes of {name}")


def test_damaged_saved_vocabularies(tmp_path: Path) -> None:
    fuzz(tmp_path / "saved", saved_vocab(tmp_path), damage_bytes, "bytes of a saved one", always_refused=True)


@pytest.mark.parametrize("name", [name for name in FORMATS if name.endswith(".json")])
def test_damaged_documents(name: str, tmp_path: Path) -> None:
    fuzz(tmp_path / name, FORMATS[name], damage_json, f"values of {name}")


@pytest.mark.parametrize("name", ["tokenizer_config.json", "config.json", "generation_config.json"])
def test_damaged_configuration(name: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(FORMATS["tokenizer.model"])
    added = {"11": {"content": "<x>", "special": False}, "2": {"content": "</s>", "special": True}}
    content = {
        "eos_token": {"content": "</s>"},
        "eos_token_id": [1, 2],
        "vocab_size": 20,
        "text_config": {"vocab_size": 30},
        "added_tokens_decoder": added,
    }
    file = tmp_path / name

    def damage(source: random.Random, raw: bytes) -> bytes:
        return (damage_json if source.random() < 0.7 else damage_bytes)(source, raw)

    started, number = time.monotonic(), 0
    while time.monotonic() - started < SECONDS or number < 50:
        number += 1
        file.write_bytes(damage(random.Random(f"{name} {number}"), json.dumps(content).encode()))
        try:
            Vocab.from_file(tmp_path)
        except VocabError as error:
            assert str(error)
