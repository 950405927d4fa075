"""``_native.pyi`` against the module that was built."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import glrgrid
from glrgrid import _native

STUB = ast.parse((Path(glrgrid.__file__).parent / "_native.pyi").read_text("utf-8"))

Parameters = list[tuple[str, str, str | None]]
"""Name, kind and default of each parameter."""

KINDS = inspect.Parameter


def stub_parameters(function: ast.FunctionDef) -> Parameters:
    """What the stub says, ``self`` or ``cls`` left out."""
    arguments = function.args
    named = [(a.arg, KINDS.POSITIONAL_ONLY.name) for a in arguments.posonlyargs]
    named += [(a.arg, KINDS.POSITIONAL_OR_KEYWORD.name) for a in arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(named) - len(arguments.defaults))
    defaults += arguments.defaults
    named += [(a.arg, KINDS.KEYWORD_ONLY.name) for a in arguments.kwonlyargs]
    defaults += arguments.kw_defaults
    pairs = zip(named, defaults, strict=True)
    found = [(name, kind, None if d is None else ast.unparse(d)) for (name, kind), d in pairs]
    return found[1:] if found and found[0][0] in ("self", "cls") else found


def native_parameters(function: Any) -> Parameters:
    """What the module says, ``self`` left out."""
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        default = None if parameter.default is KINDS.empty else repr(parameter.default)
        found.append((name, parameter.kind.name, default))
    return found[1:] if found and found[0][0] == "self" else found


def is_public(name: str) -> bool:
    return not name.startswith("_") or name == "__version__"


def stub_members(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    members = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            members[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            members[node.target.id] = node
    return members


def is_property(function: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "property" for d in function.decorator_list)


MEMBERS = stub_members(STUB.body)
CLASSES = {name: node for name, node in MEMBERS.items() if isinstance(node, ast.ClassDef)}


def test_the_same_names():
    assert {n for n in MEMBERS if is_public(n)} == {n for n in vars(_native) if is_public(n)}


def test_functions_have_the_same_parameters():
    functions = {name: node for name, node in MEMBERS.items() if isinstance(node, ast.FunctionDef)}
    assert functions.keys() >= {"compile", "load"}
    for name, node in functions.items():
        assert stub_parameters(node) == native_parameters(getattr(_native, name)), name


def test_classes_have_the_same_members():
    assert CLASSES.keys() >= {"CompiledGrammar", "Matcher", "Vocab"}
    for name, node in CLASSES.items():
        ours = {member for member in stub_members(node.body) if is_public(member)}
        theirs = {member for member in vars(getattr(_native, name)) if is_public(member)}
        assert ours == theirs, name


def test_methods_have_the_same_parameters():
    for name, node in CLASSES.items():
        native = getattr(_native, name)
        for member, function in stub_members(node.body).items():
            assert isinstance(function, ast.FunctionDef)
            where = f"{name}.{member}"
            if member == "__new__":
                assert stub_parameters(function) == native_parameters(native), where
            elif is_property(function):
                assert inspect.isgetsetdescriptor(vars(native)[member]), where
            else:
                assert inspect.ismethoddescriptor(vars(native)[member]), where
                assert stub_parameters(function) == native_parameters(vars(native)[member]), where


def test_a_class_can_be_made_exactly_if_the_stub_says_so():
    for name, node in CLASSES.items():
        can_be_made = getattr(_native, name).__text_signature__ is not None
        assert ("__new__" in stub_members(node.body)) == can_be_made, name


def test_everything_explains_itself_at_run_time():
    """``help()`` shows what the stub says, of every public name."""
    documented = 0

    def check(where: str, node: ast.stmt, native: Any) -> None:
        nonlocal documented
        assert isinstance(node, ast.FunctionDef | ast.ClassDef)
        assert ast.get_docstring(node), f"{where} is not documented"
        assert inspect.getdoc(native) == ast.get_docstring(node), where
        documented += 1

    for name, node in MEMBERS.items():
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            check(name, node, getattr(_native, name))
    for name, node in CLASSES.items():
        for member, function in stub_members(node.body).items():
            if is_public(member):
                check(f"{name}.{member}", function, getattr(getattr(_native, name), member))
    assert documented > 30
    assert "Parameters" in inspect.getdoc(glrgrid.Matcher.fill_next_token_bitmask)
