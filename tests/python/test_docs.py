"""The examples in the README and in docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import glrgrid

README = Path(__file__).parents[2] / "README.md"
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(glrgrid.__path__, "glrgrid.")
    if not module.name.endswith(("._native", ".__main__")) and not module.name.startswith("glrgrid.demo")
)


def check(examples: doctest.DocTest) -> int:
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    report: list[str] = []
    results = runner.run(examples, out=report.append)
    assert results.failed == 0, "".join(report)
    return results.attempted


@pytest.mark.parametrize("name", ["glrgrid", *MODULES])
def test_docstrings(name):
    module = importlib.import_module(name)
    for examples in doctest.DocTestFinder(exclude_empty=True).find(module):
        check(examples)


def test_docstring_examples_were_found():
    finder = doctest.DocTestFinder()
    found = [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert len(found) >= 5


@pytest.mark.parametrize("name", ["README.md", "docs/compiling.md", "docs/json_schema.md", "docs/sql.md"])
def test_examples_of_documents(name, tmp_path, monkeypatch):
    blocks = re.findall(r"(?ms)^```python\n(.*?)^```", (README.parent / name).read_text("utf-8"))
    assert blocks
    monkeypatch.chdir(tmp_path)
    for position, block in enumerate(blocks):
        if ">>>" in block:
            test = doctest.DocTestParser().get_doctest(block, {}, f"{name} block {position}", name, 0)
            assert check(test) > 0
        else:
            exec(compile(block, f"{name} block {position}", "exec"), {"__name__": "readme"})


def test_the_documents_do_not_speak_of_any_machine():
    root = README.parent
    for path in [*root.glob("*.md"), root / "Makefile", root / ".ci" / "run", *root.glob("docs/**/*.md")]:
        text = path.read_text("utf-8")
        assert not re.search(r"/(work|home|root|Users|tmp)/", text), path
