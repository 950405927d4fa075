"""The command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import glrgrid as gg
from glrgrid.cli import app
from glrgrid.data import default_tokenizer_path

INSEPARABLE = """
%glrgrid {"lexer": "basic"}
start: A (B | "c")
A: /x+/
B: "xb"
unused: A
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def compile_to(output: Path, grammar: object, *more: object) -> Result:
    return run("compile", grammar, "-t", "default", "-o", output, *more)


def check_refused(result: Result, *parts: str) -> None:
    assert result.exit_code == 1
    assert result.stdout == ""
    last = result.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    for part in parts:
        assert part in last
    assert "Traceback" not in result.output


def test_compile_writes_an_artifact_that_loads(tmp_path):
    output = tmp_path / "calc.glrgrid"
    result = compile_to(output, "calc")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert f"wrote {output}: {output.stat().st_size:,} bytes" in result.stdout
    for word in ("stage", "parser_dwa", "count", "lr states", "section", "lexer_rows", "total"):
        assert word in result.stdout

    matcher = gg.Matcher(gg.load(output, gg.Vocab.default()))
    assert matcher.accept_bytes(b"1 + 2") == 5
    assert matcher.is_accepting()


def test_compile_does_not_overwrite_its_grammar(tmp_path):
    grammar = tmp_path / "x.lark"
    grammar.write_text('start: "a"')
    check_refused(compile_to(grammar, grammar), "is to be read", "--output")
    assert grammar.read_text() == 'start: "a"'


def test_compile_keeps_to_limits(tmp_path):
    output = tmp_path / "x.glrgrid"
    result = compile_to(output, "sql_core", "--max-seconds", 1e-9)
    assert result.exit_code == 0 and "max_seconds" in result.stderr
    assert gg.load(output, gg.Vocab.default()).stats["rows_missing"] > 0
    for option in ("--max-seconds", "--max-memory-mb", "--max-artifact-mb"):
        result = compile_to(output, "sql_core", option, 1e-6, "--on-budget", "error")
        check_refused(result, "sql_core: ", option.lstrip("-").replace("-", "_"))
    result = compile_to(
        output, "sql_core", "--max-seconds", 600, "--max-memory-mb", 4000, "--max-artifact-mb", 100
    )
    assert result.exit_code == 0 and result.stderr == ""
    assert gg.load(output, gg.Vocab.default()).stats["rows_missing"] == 0
    check_refused(compile_to(output, "sql_core", "--max-seconds", 0), "pass a positive number")
    assert compile_to(output, "sql_core", "--on-budget", "wait").exit_code == 2


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.lark", 'start: "a', "(line 1, column 8)"),
        ("x.lark", "start: A", 'undefined symbol "A"'),
        ("x.gbnf", 'root ::= ("a"', "group opened on line 1"),
        ("x.json", '{"type": 3}', "(at /type)"),
        ("x.json", '{"enum": []}', ""),
        ("x.regex", "(a", "malformed"),
    ],
)
def test_errors_name_the_file(tmp_path, name, text, message):
    grammar = tmp_path / name
    grammar.write_text(text)
    check_refused(compile_to(tmp_path / "out", grammar), f"error: {grammar}: ", message)


def test_the_line_break_that_ends_a_regex_file_is_no_part_of_it(tmp_path):
    (tmp_path / "x.regex").write_text("[0-9]{3}\n")
    assert compile_to(tmp_path / "x.glrgrid", tmp_path / "x.regex").exit_code == 0
    compiled = gg.load(tmp_path / "x.glrgrid", gg.Vocab.default())
    assert gg.Matcher(compiled).accept_bytes(b"123\n") == 3


def test_compile_takes_a_json_schema(tmp_path):
    schema, output = tmp_path / "point.json", tmp_path / "point.glrgrid"
    schema.write_text('{"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}')
    result = compile_to(output, schema)
    assert result.exit_code == 0, result.output
    matcher = gg.Matcher(gg.load(output, gg.Vocab.default()))
    assert matcher.accept_bytes(b'{"x": 1}') == 8 and matcher.is_accepting()
    check_refused(compile_to(output, schema, "--start", "x"), "json_schema have no --start")
    schema.write_text('{"properties": {"x": {"type": "int"}}}')
    check_refused(compile_to(output, schema), "not a type", "/properties/x/type")


def test_sections_add_up_and_come_largest_first(tmp_path):
    output = tmp_path / "json.glrgrid"
    result = compile_to(output, "json")
    table = result.stdout.partition("section")[2].partition("wrote")[0].splitlines()[1:]
    sizes = [int(line.split()[-1].replace(",", "")) for line in table if line.strip()]
    *sections, _smaller, _header, total = sizes
    assert sections == sorted(sections, reverse=True)
    assert sum(sizes) - total == total == output.stat().st_size


def test_json_is_one_object_and_nothing_else(tmp_path):
    output = tmp_path / "calc.glrgrid"
    result = compile_to(output, "calc", "--json", "--lexer", "basic", "--start", "start")
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["output"] == str(output)
    assert report["vocab_size"] == gg.Vocab.default().size
    assert report["vocab_fingerprint"] == gg.Vocab.default().fingerprint
    assert report["warnings"] == []
    stats = report["stats"]
    assert stats["artifact_bytes"] == output.stat().st_size
    assert stats["milliseconds"].keys() >= {"lexer", "terminal_dwa", "parser_dwa"}
    assert 0 < sum(stats["section_bytes"].values()) < stats["artifact_bytes"]


def test_grammars_and_tokenizers_from_files(tmp_path):
    grammar = tmp_path / "abc.lark"
    grammar.write_text('first: "a" "b"\nsecond: "c"', "utf-8")
    tokenizer = default_tokenizer_path()
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "tokenizer.json").write_bytes(tokenizer.read_bytes())

    artifacts = []
    for place in (tokenizer, folder):
        output = tmp_path / f"{len(artifacts)}.glrgrid"
        result = run(
            "compile", grammar, "-t", place, "-o", output, "--lexer", "basic", "--start", "second", "--json"
        )
        assert result.exit_code == 0, result.output
        artifacts.append(output.read_bytes())
    assert artifacts[0] == artifacts[1]
    matcher = gg.Matcher(gg.load(artifacts[0], gg.Vocab.default()))
    assert matcher.accept_bytes(b"ab") == 0
    assert matcher.accept_bytes(b"c") == 1


def test_warnings_are_lines_on_stderr(tmp_path):
    grammar = tmp_path / "odd.lark"
    grammar.write_text(INSEPARABLE, "utf-8")
    result = compile_to(tmp_path / "odd.glrgrid", grammar, "--json")
    assert result.exit_code == 0, result.output
    lines = result.stderr.splitlines()
    assert lines and all(line.startswith("warning: ") for line in lines)
    report = json.loads(result.stdout)
    assert report["warnings"] != []
    assert lines[-len(report["warnings"]) :] == [f"warning: {message}" for message in report["warnings"]]
    assert any("unused" in line for line in lines)


def test_errors_are_one_line(tmp_path):
    output = tmp_path / "x.glrgrid"
    check_refused(compile_to(output, "sqll"), "sqll", "no such file", "calc, json, script, sql_core")
    check_refused(compile_to(output, tmp_path), str(tmp_path), "cannot be read")

    broken = tmp_path / "broken.lark"
    broken.write_text('%glrgrid {"lexer": "basic"}\nstart: "a" (', "utf-8")
    check_refused(compile_to(output, broken), "line 2, column 13")
    broken.write_bytes(b'start: "\xff"')
    check_refused(compile_to(output, broken), str(broken), "not UTF-8")
    broken.write_text("start: A\nA: /x*/", "utf-8")
    check_refused(compile_to(output, broken, "--lexer", "basic"), "A")

    check_refused(compile_to(output, "calc", "--lexer", "greedy"), "greedy", '"basic"')
    check_refused(compile_to(output, "calc", "--start", "begin"), "begin")
    check_refused(run("compile", "calc", "-t", tmp_path / "no.json", "-o", output), "no.json")
    check_refused(compile_to(tmp_path / "no folder" / "x", "calc"), "cannot write", "no folder")
    assert not output.exists()


@pytest.fixture(scope="module")
def calc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("artifacts") / "calc.glrgrid"
    assert compile_to(output, "calc").exit_code == 0
    return output


def test_mask_says_what_may_come_next(calc: Path) -> None:
    result = run("mask", calc, "-t", "default", "--prefix", "1 ", "--limit", 3)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[:2] == [
        "output: complete",
        "expected: PLUS, MINUS, STAR, SLASH, CIRCUMFLEX, end of input, ignored text",
    ]
    allowed = gg.Matcher(gg.load(calc, gg.Vocab.default()))
    allowed.accept_bytes(b"1 ")
    count = int(allowed.mask().sum())
    assert lines[2] == f"allowed: {count:,} of 8,000 ids"
    assert len(lines) == 7 and lines[-1].split() == ["...", "and", f"{count - 3:,}", "more"]

    report = json.loads(run("mask", calc, "-t", "default", "--json", "--limit", 10000).stdout)
    assert report["prefix"] == "" and report["complete"] is False
    assert (
        report["allowed"]
        == len(report["tokens"])
        == int(gg.Matcher(gg.load(calc, gg.Vocab.default())).mask().sum())
    )
    assert "1" in {json.loads(token["text"]) for token in report["tokens"] if token["text"][1:2].isdigit()}


def test_mask_shows_forced_text(tmp_path: Path) -> None:
    grammar = tmp_path / "forced.lark"
    grammar.write_text('%glrgrid {"lexer": "basic"}\nstart: "abc\\n" ("d" | "e")', "utf-8")
    output = tmp_path / "forced.glrgrid"
    assert compile_to(output, grammar).exit_code == 0
    assert 'forced: "bc\\n"' in run("mask", output, "-t", "default", "-p", "a").stdout


def test_mask_explains(calc: Path) -> None:
    result = run("mask", calc, "-t", "default", "-p", "12", "--explain", "x")
    assert result.exit_code == 0, result.output
    token = gg.Vocab.default().tokens.index(b"x")
    assert result.stdout.splitlines() == [
        f'"x" (token {token}): not allowed',
        'reason: "x" would be NAME, which cannot follow "12" (NUMBER); expected NUMBER, PLUS, MINUS, STAR, SLASH, '
        "CIRCUMFLEX, end of input or ignored text",
        "at byte: 0",
        "found: NAME",
        "expected: NUMBER, PLUS, MINUS, STAR, SLASH, CIRCUMFLEX, end of input, ignored text",
    ]
    by_id = run("mask", calc, "-t", "default", "-p", "12", "--explain", f"#{token}")
    assert by_id.stdout == result.stdout
    allowed = run("mask", calc, "-t", "default", "--explain", "f(x, y) + zzz", "--json")
    report = json.loads(allowed.stdout)
    assert report["allowed"] is True and report["id"] is None and report["at_byte"] == 13
    end = gg.Vocab.default().eos_ids[0]
    assert "the output is not complete" in run("mask", calc, "-t", "default", "--explain", f"#{end}").stdout

    check_refused(run("mask", calc, "-t", "default", "--explain", "#8000"), "8000", "out of range")
    check_refused(run("mask", calc, "-t", "default", "-p", "1 2"), "refused at byte 2", "NUMBER")
    check_refused(run("mask", calc.parent / "none", "-t", "default"), "cannot read")


def test_check_accepts_or_names_the_place(calc: Path, tmp_path: Path) -> None:
    file = tmp_path / "sum.txt"
    file.write_bytes(b"1 +\n 2\n")
    result = run("check", calc, file, "-t", "default")
    assert (result.exit_code, result.stdout) == (0, f"{file}: accepted, 7 bytes\n")

    file.write_bytes(b"1 +\n\tx * / 2")
    result = run("check", calc, file, "-t", "default")
    assert result.exit_code == 1 and result.stderr == ""
    assert result.stdout.splitlines() == [
        f'{file}:2:6: "/" would be SLASH, which cannot come here (byte 9)',
        "   x * / 2",
        "       ^",
        "expected: NUMBER, NAME, MINUS, LPAR, ignored text",
    ]
    file.write_bytes(b"1 + ")
    result = run("check", calc, file, "-t", "default")
    assert result.exit_code == 1
    assert result.stdout.startswith(f"{file}:1:5: the text ends here but is not complete (byte 4)")
    file.write_bytes("é".encode())
    assert run("check", calc, file, "-t", "default").stdout.startswith(f"{file}:1:1: no terminal that")

    stdin = CliRunner().invoke(app, ["check", str(calc), "-", "-t", "default"], input="x")
    assert (stdin.exit_code, stdin.stdout) == (0, "-: accepted, 1 bytes\n")
    check_refused(run("check", calc, tmp_path / "none", "-t", "default"), "none", "cannot be read")
    check_refused(run("check", calc, tmp_path, "-t", "default"), "cannot be read")


def test_inspect_needs_no_vocabulary(calc: Path) -> None:
    result = run("inspect", calc)
    assert result.exit_code == 0, result.output
    for words in ("format version", "lexer states", "dwa states", "lexer_rows", "terminals: NUMBER, NAME,"):
        assert words in result.stdout
    report = json.loads(run("inspect", calc, "--json").stdout)
    assert report["artifact_bytes"] == calc.stat().st_size
    assert report["vocab_fingerprint"] == gg.Vocab.default().fingerprint
    compiled = gg.load(calc, gg.Vocab.default())
    assert report["grammar_fingerprint"] == compiled.grammar_fingerprint
    assert report["section_bytes"] == compiled.stats["section_bytes"]
    assert report["counts"]["terminals"] == len(report["terminals"]) == 11


def test_inspect_draws(calc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lexer, parser = (run("inspect", calc, "--dot", which).stdout for which in ("lexer", "parser"))
    states = json.loads(run("inspect", calc, "--json").stdout)["counts"]
    for dot, name, count in (
        (lexer, "lexer", states["lexer_states"]),
        (parser, "parser", states["dwa_states"]),
    ):
        assert dot.startswith(f"digraph {name} {{") and dot.endswith("}\n")
        nodes = [line for line in dot.splitlines() if " [label=" in line and " -> " not in line]
        assert len(nodes) in (count, count + 1)
        assert dot.count(" -> ") >= count - 1
    for words in ("emits NUMBER", "0–9", "between lexemes"):
        assert words in lexer
    for words in ("top of the stack", "NUMBER#", "any other"):
        assert words in parser
    check_refused(run("inspect", calc, "--dot", "lexer", "--max-states", 3), "9 states", "max_states is 3")
    assert run("inspect", calc, "--dot", "glr").exit_code == 2

    if shutil.which("dot"):
        assert "</svg>" in run("inspect", calc, "--svg", "lexer").stdout
    monkeypatch.setenv("PATH", str(tmp_path))
    check_refused(run("inspect", calc, "--svg", "lexer"), "dot is not installed", "--dot")


def test_inspect_refuses_damage(calc: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    data = bytearray(calc.read_bytes())
    data[-1] ^= 1
    damaged.write_bytes(data)
    check_refused(run("inspect", damaged), "damaged")
    damaged.write_bytes(data[:100])
    check_refused(run("inspect", damaged), "truncated")
    check_refused(run("inspect", tmp_path), "folder")
    check_refused(run("inspect", tmp_path / "none"), "cannot read")


@pytest.mark.parametrize("arguments", [["compile"], ["compile", "calc"], ["compil"], ["compile", "--wrong"]])
def test_usage(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Usage:" in result.stderr


def test_version():
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout == f"glrgrid {gg.__version__}\n"


def test_lint_says_what_is_wrong(tmp_path):
    file = tmp_path / "grammar.lark"
    file.write_text(INSEPARABLE)
    result = run("lint", file)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == f"{file}: lark"
    assert any(line.startswith('warning: rule "unused"') for line in lines)
    assert any("can no longer be separated from a following B" in line for line in lines)
    assert "lr states" in lines[-1] and "0 lr conflicts" in lines[-1]


def test_lint_shows_conflicts_with_an_example(tmp_path):
    file = tmp_path / "g.lark"
    file.write_text('start: s\ns: "if" s | "if" s "else" s | "x"\n%ignore " "')
    report = json.loads(run("lint", file, "--json").stdout)
    assert report["dialect"] == "lark"
    assert report["errors"] == [] and report["sizes"]["lr_conflicts"] == 1
    assert report["conflicts"] == [
        {"before": ["IF", "s"], "next": "ELSE", "example": "if x else", "actions": ["shift", "s: IF s"]}
    ]
    assert 'conflict: after "if x else": shift | s: IF s' in run("lint", file).stdout


@pytest.mark.parametrize(
    ("name", "text", "dialect"),
    [
        ("g.gbnf", 'root ::= "a"', "gbnf"),
        ("g.txt", 'root ::= "a"', "gbnf"),
        ("g.txt", 'start: "a"', "lark"),
        ("g.regex", "a:b", "regex"),
        ("g.txt", "[a-z]+", "regex"),
        ("g.json", '["yes", "no"]', "choices"),
        ("g.json", '{"type": "integer"}', "json_schema"),
        ("g.json", '{"type": "structural_tag", "format": {"type": "any_text"}}', "structural_tag"),
        ("g.json", '{"structures": [], "triggers": []}', "structural_tag"),
        ("x.json", '{"type": "any_text"}', "structural_tag"),
    ],
)
def test_dialects_are_told_apart(tmp_path, name, text, dialect):
    file = tmp_path / name
    file.write_text(text)
    assert run("lint", file).stdout.startswith(f"{file}: {dialect}\n")


def test_lint_names_rules_that_derive_nothing(tmp_path):
    file = tmp_path / "x.gbnf"
    file.write_text(
        'root ::= "(" root? ")" | dead | "x" idle\ndead ::= "y" dead | idle dead\nidle ::= idle "z"\nfree ::= "a"'
    )
    lines = run("lint", file).stdout.splitlines()
    assert [line for line in lines if line.startswith("warning")] == [
        'warning: rule "dead" (line 2) derives no text',
        'warning: rule "idle" (line 3) derives no text',
        'warning: rule "free" (line 4) cannot be reached from "root"',
    ]


def test_lint_of_a_refused_grammar(tmp_path):
    file = tmp_path / "g.gbnf"
    file.write_text('root ::= "a" missing')
    result = run("lint", file)
    assert result.exit_code == 1
    assert 'error: undefined rule "missing" (line 1, column 14)' in result.stdout
    report = json.loads(run("lint", file, "--json").stdout)
    assert (report["errors"][0]["line"], report["errors"][0]["column"]) == (1, 14)
    check_refused(run("lint", file, "--dialect", "ebnf"), 'unknown dialect "ebnf"', "gbnf")


def test_compile_reads_other_dialects(tmp_path):
    file, output = tmp_path / "g.gbnf", tmp_path / "g.glrgrid"
    file.write_text('other ::= "(" other? ")"')
    assert compile_to(output, file, "--start", "other").exit_code == 0
    matcher = gg.Matcher(gg.load(output, gg.Vocab.default()))
    assert matcher.accept_bytes(b"(())") == 4 and matcher.is_accepting()
    check_refused(compile_to(output, file, "--lexer", "basic"), "grammars in gbnf have no --lexer")
    check_refused(compile_to(output, file), 'rule "root", where the output begins, is not defined')
