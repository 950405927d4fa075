"""Damaged artifacts are refused, and hostile ones, whose hashes are right, do no harm.

Hostile cases run in child processes (this file as a program) that a case kills if it takes too long or too much memory.
"""

from __future__ import annotations

import os
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import blake3
import pytest

import glrgrid as gg
from glrgrid import _native

HEADER, ENTRY, ALIGN = 128, 56, 64
CASES = 1500
BATCH = 150
SECONDS_PER_CASE = 5
BYTES_PER_CASE = 1 << 30

GRAMMARS = {
    "ambiguous": ('start: e\ne: e e | "x" | o "y" | p "x"\no:\np: o\n', "basic"),
    "groups": (
        "start: (TEXT | OPEN NAME CLOSE)*\nTEXT: /([^{]|\\{[^{])+/\n"
        "OPEN: /\\{\\{ */\nCLOSE: / *\\}\\}/\nNAME: /[a-z]+/\n",
        "contextual",
    ),
    "watchers": (
        'start: (NAME "=" e ";")*\ne: e "+" e | NUMBER | NAME | "(" e ")"\nNAME: /[a-z]+/\n'
        "NUMBER: /[0-9]+(\\.[0-9]+)?(e[0-9]+)?/\n%ignore /\\/\\*([^*]|\\*+[^*\\/])*\\*+\\//\n%ignore / +/\n",
        "basic",
    ),
    "counters": (
        'start: (WORD "=" STRING ";")*\nWORD: /[ab]{5,60}/\n'
        'STRING: /"(x|b1){0,50}"/ & /"[^;]{2,40}"/\n%ignore / {1,30}/\n',
        "basic",
    ),
}
TEXTS = {
    "ambiguous": [b"xxyxx", b"x" * 40],
    "groups": [b"a {b {{ cd }} {{e}}", b"{{{"],
    "watchers": [b"a = 1e5 + /* c */(b);b=(x) ;", b"ab=1.5e", b"a=" + b"(" * 40],
    "counters": [
        b"ab" * 29 + b"a  =" + b" " * 29 + b'"' + b"xb1" * 13 + b'"',
        b"b" * 60 + b'="xx";aaaaa = "xx',
    ],
}
TOKENS = [bytes([i]) for i in range(256)] + [b"xx", b"a {{", b"}} b", b"1e5", b"a = ", b"))", b"/* ", b"e."]
END = len(TOKENS)
VOCAB = _native.Vocab([*TOKENS, None], [END])


@cache
def artifact(name: str, shared: bool = True) -> bytes:
    text, lexer = GRAMMARS[name]
    tuning = {"copied_states": 0} | ({} if shared else {"shared_tokens": 0, "min_agreement": 0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ir = gg.Grammar.from_lark(text, lexer=lexer).ir
    return _native.compile(ir.to_json(), VOCAB, **tuning).to_bytes()


@cache
def section_names() -> list[str]:
    tables = Path(__file__).parents[2] / "dwa_runtime" / "src" / "tables.rs"
    body = tables.read_text("utf-8").partition("\nsections! {")[2].partition("\n}\n")[0]
    return re.findall(r"^    (\w+): \w+,$", body, re.MULTILINE)


Sections = dict[str, tuple[int, bytearray]]
"""Bytes per element and contents of each section."""


def split(data: bytes) -> tuple[bytes, Sections]:
    names = section_names()
    assert len(names) == struct.unpack_from("<I", data, 12)[0]
    sections = {}
    for i, name in enumerate(names):
        offset, length, width = struct.unpack_from("<QQI", data, HEADER + ENTRY * i)
        sections[name] = (width, bytearray(data[offset : offset + length]))
    return data[:HEADER], sections


def join(header: bytes, sections: Sections) -> bytes:
    """An artifact of these sections, with lengths and hashes that are right."""
    out = bytearray(HEADER + ENTRY * len(sections))
    for i, (width, contents) in enumerate(sections.values()):
        out += bytes(-len(out) % ALIGN)
        struct.pack_into("<QQI", out, HEADER + ENTRY * i, len(out), len(contents), width)
        out[HEADER + ENTRY * i + 24 : HEADER + ENTRY * (i + 1)] = blake3.blake3(bytes(contents)).digest()
        out += contents
    out[:HEADER] = header
    struct.pack_into("<Q", out, 16, len(out))
    return rehashed(out, len(sections))


def rehashed(data: bytes | bytearray, sections: int) -> bytes:
    """The same with the hash of header and section table set right."""
    out = bytearray(data)
    out[96:128] = bytes(32)
    out[96:128] = blake3.blake3(bytes(out[: HEADER + ENTRY * sections])).digest()
    return bytes(out)


def numbers(section: tuple[int, bytearray]) -> list[int]:
    width, contents = section
    return [int.from_bytes(contents[i : i + width], "little") for i in range(0, len(contents), width)]


def packed(width: int, values: list[int]) -> bytearray:
    return bytearray(b"".join(value.to_bytes(width, "little") for value in values))


def mutated(rng: random.Random) -> tuple[str, bytes, list[str]]:
    """A grammar, its artifact changed in a few elements, and what was changed."""
    name = rng.choice(list(GRAMMARS))
    header, sections = split(artifact(name, rng.random() < 0.5))
    changes = []
    for _ in range(rng.choice([1, 1, 1, 1, 2, 3])):
        section = rng.choice([s for s, (_, contents) in sections.items() if contents and s != "names"])
        width = sections[section][0]
        values = numbers(sections[section])
        at, other, most = rng.randrange(len(values)), rng.randrange(len(values)), (1 << 8 * width) - 1
        match rng.choice(["value", "value", "copy", "copy", "flip", "swap", "all", "delete", "repeat"]):
            case "value":
                near = [values[at] + 1, max(values[at] - 1, 0), values[at] + 2]
                values[at] = min(rng.choice([0, 1, 2, most, most - 1, most // 2, *near]), most)
            case "copy":
                values[at] = values[other]
            case "flip":
                values[at] ^= 1 << rng.randrange(8 * width)
            case "swap":
                values[at], values[other] = values[other], values[at]
            case "all":
                values = [values[at]] * len(values)
            case "delete":
                del values[at]
            case "repeat":
                values.insert(at, values[at])
        sections[section] = (width, packed(width, values))
        changes.append(f"{section}[{at}]")
    return name, join(header, sections), changes


def use(data: bytes, texts: list[bytes]) -> str:
    """Load an artifact and decode with it; what came of it."""
    try:
        compiled = _native.load(data, VOCAB)
    except gg.ArtifactError:
        return "refused"
    outcome = "served"
    _native.inspect(data)
    for text in texts:
        matcher = gg.Matcher(compiled)
        for byte in text:
            for call in (matcher.mask, matcher.is_accepting, lambda b=byte, m=matcher: m.accept_token(b)):
                try:
                    call()
                except gg.DeadEnd:
                    outcome = "dead end"
                except gg.InternalError as error:
                    outcome = f"InternalError: {error}"
        for token in range(256, END + 1):
            fork = matcher.fork()
            try:
                fork.accept_token(token)
            except gg.InternalError as error:
                outcome = f"InternalError: {error}"
    return outcome


def child(first: int, count: int) -> None:
    """Cases by seed, each named before it runs. One that takes too long is ended by SIGPROF, which nothing handles."""
    for name in GRAMMARS:
        artifact(name), artifact(name, False)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    bytes_now = pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (bytes_now + BYTES_PER_CASE,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    for seed in range(first, first + count):
        name, data, changes = mutated(random.Random(seed))
        print(f"{seed} {name} {' '.join(changes)}", end=": ", flush=True)
        signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_CASE)
        outcome = use(data, TEXTS[name])
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(outcome.splitlines()[0], flush=True)


def batch(first: int, count: int = BATCH) -> Counter[str]:
    run = subprocess.run(
        [sys.executable, __file__, str(first), str(count)], capture_output=True, text=True, timeout=1200
    )
    lines = run.stdout.splitlines()
    assert run.returncode == 0, f"ended with {run.returncode} in case {lines[-1:]}\n{run.stderr[-3000:]}"
    assert len(lines) == count
    return Counter(re.sub(r"\d+", "N", line.split(": ", 1)[1]) for line in lines)


def refused(data: bytes) -> None:
    with pytest.raises(gg.ArtifactError):
        _native.load(data, VOCAB)


each_grammar = pytest.mark.parametrize("name", GRAMMARS)


@each_grammar
def test_joining_what_was_split_gives_the_same_bytes(name: str) -> None:
    assert join(*split(artifact(name))) == artifact(name)


@each_grammar
def test_every_flipped_byte_is_refused(name: str) -> None:
    data = bytearray(artifact(name))
    rng = random.Random(1)
    for at in range(len(data)):
        change = rng.randrange(1, 256)
        data[at] ^= change
        refused(bytes(data))
        data[at] ^= change


@each_grammar
def test_every_truncation_is_refused(name: str) -> None:
    data = artifact(name)
    for length in range(len(data)):
        refused(data[:length])
    for more in (b"\0", bytes(64), data):
        refused(data + more)


@each_grammar
def test_sections_that_lie_elsewhere_are_refused(name: str) -> None:
    data = artifact(name)
    count = len(section_names())
    for i in range(count):
        at = HEADER + ENTRY * i
        offset, length, width = struct.unpack_from("<QQI", data, at)
        for entry in (
            (offset, 2**64 - 1, width),
            (offset, 2**63, width),
            (offset, len(data), width),
            (offset, 2**64 - offset, width),
            (2**64 - 64, length, width),
            (2**64 - 64, 64, width),
            (0, length, width),
            (offset + 64, length, width),
            (offset + 1, length, width),
            (offset, length, 0),
            (offset, length, 3),
            (offset, length, 2**32 - 1),
        ):
            changed = bytearray(data)
            struct.pack_into("<QQI", changed, at, *entry)
            refused(rehashed(changed, count))


@each_grammar
def test_swapped_sections_are_refused_or_harmless(name: str) -> None:
    header, sections = split(artifact(name))
    names = list(sections)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            if sections[first] != sections[second] and sections[first][0] != sections[second][0]:
                refused(join(header, {**sections, first: sections[second], second: sections[first]}))


@pytest.mark.parametrize(
    "version, sections", [(0, None), (2, None), (2**32 - 1, None), (3, 0), (3, 2**32 - 1)]
)
def test_other_versions_and_numbers_of_sections_are_refused(version: int, sections: int | None) -> None:
    data = bytearray(artifact("ambiguous"))
    count = len(section_names())
    struct.pack_into("<II", data, 8, version, count if sections is None else sections)
    refused(rehashed(data, count))


def ids(width: int, values: list[int]) -> tuple[int, bytearray]:
    return width, packed(width, values)


def test_what_would_take_much_memory_or_time_is_refused() -> None:
    header, sections = split(artifact("watchers"))
    states = len(numbers(sections["lexer_row"]))
    productions = len(numbers(sections["prod_len"]))
    meta = numbers(sections["meta"])
    verdicts = 1 << 20
    groups = 3000
    hostile: list[Sections] = [
        # A production longer than any path through the LR states.
        {"prod_len": ids(4, [1 << 19] * productions)},
        # Runs that repeat a word.
        {
            "run_start": ids(4, [0, 100_000]),
            "run_word": (2, bytearray(200_000)),
            "run_bits": (4, bytearray(400_000)),
        },
        # Many verdicts in each of many groups of one state.
        {
            "meta": ids(4, [*meta[:4], verdicts, *meta[5:]]),
            "verdict_masks": (8, bytearray(verdicts // 8)),
            "output_verdicts": (8, bytearray(verdicts // 8)),
            "dwa_output": ids(4, [2**32 - 1] * len(numbers(sections["dwa_output"]))),
            "dwa_default_output": ids(4, [2**32 - 1] * len(numbers(sections["dwa_default_output"]))),
            "group_start": ids(4, [0] + [groups] * states),
            "group_emit": ids(4, [2**32 - 1] * groups),
            "group_flags": (1, bytearray(groups)),
            "group_mask": ids(4, [0] * groups),
            "piece_start": ids(4, [0] * (groups + 1)),
            "piece_source": ids(4, []),
            "piece_bytes": ids(4, []),
            "own_start": ids(4, [0] * (groups + 1)),
            "own_verdict": ids(4, []),
            "own_run": ids(4, []),
        },
    ]
    for changes in hostile:
        refused(join(header, {**sections, **changes}))


def test_many_alternatives_are_united_quickly() -> None:
    header, sections = split(artifact("watchers"))
    many = 10_000
    starts = numbers(sections["entry_start"])
    none = (1 << 8 * sections["entry_emit2"][0]) - 1
    changes: Sections = {"entry_start": ids(4, [many * i for i in range(len(starts))])}
    for section in ("entry_emit", "entry_next"):
        width, _ = sections[section]
        values = numbers(sections[section])
        changes[section] = ids(width, [values[at] for at in starts[:-1] for _ in range(many)])
    changes["entry_emit2"] = ids(sections["entry_emit2"][0], [none] * (many * (len(starts) - 1)))
    began = time.process_time()
    assert use(join(header, {**sections, **changes}), [b"a=b;c = d;"]) in ("served", "dead end")
    assert time.process_time() - began < SECONDS_PER_CASE


@pytest.mark.parametrize("ambiguous", ["", ' | "y" "x"'])
def test_bounds_refuse_nothing_that_is_right(ambiguous: str) -> None:
    """The nothing between y and x takes exponentially many reductions, if they are made one by one."""
    levels = 12
    rules = [f"a{i}: a{i + 1} a{i + 1}" for i in range(levels)] + [f"a{levels}:"]
    text = f'start: "y" a0 "x"{ambiguous}\n' + "\n".join(rules) + "\n"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = gg.compile(gg.Grammar.from_lark(text, lexer="basic"), gg.Vocab.default())
    matcher = gg.Matcher(compiled)
    assert matcher.accept_bytes(b"yx") == 2 and matcher.is_accepting()


def test_hostile_artifacts_do_no_harm(capsys: pytest.CaptureFixture[str]) -> None:
    """A seeded slice; with ``GLRGRID_FUZZ_SECONDS`` new cases for that long."""
    seconds = float(os.environ.get("GLRGRID_FUZZ_SECONDS", "0"))
    until = time.monotonic() + seconds
    first = random.randrange(2**40) if seconds else 0
    workers = min(4, os.cpu_count() or 1)
    outcomes: Counter[str] = Counter()
    with ThreadPoolExecutor(workers) as pool:
        while not outcomes or time.monotonic() < until:
            for found in pool.map(batch, range(first, first + CASES, BATCH)):
                outcomes.update(found)
            first += CASES
    with capsys.disabled():
        print(f"\n{outcomes.total()} hostile artifacts: {dict(outcomes)}")
    assert outcomes["refused"] >= outcomes.total() // 10 and outcomes["served"] >= outcomes.total() // 10


if __name__ == "__main__":
    child(int(sys.argv[1]), int(sys.argv[2]))


def test_saving_follows_links_keeps_modes_and_writes_to_pipes(tmp_path: Path) -> None:
    compiled = gg.compile(gg.Grammar.from_choices(["a"]), gg.Vocab.default())
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    compiled.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == compiled.to_bytes()
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640
    compiled.save(os.devnull)
    assert not Path(os.devnull).is_file()
    with pytest.raises(gg.ArtifactError, match="write"):
        compiled.save(tmp_path)
