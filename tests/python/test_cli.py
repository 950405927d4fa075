"""The command line."""

from __future__ import annotations

import json
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
    check_refused(compile_to(output, "sqll"), "sqll", "no such file", "calc, json, sql_core")
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
