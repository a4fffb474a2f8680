"""What Python says of the statements: how it calls them, and which classes their rows fill.
Read from its source.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import aiosql

import paydesk
from paydesk.database.records import record_if_any, record_of, records_of
from paydesk.database.statements import Statements

SOURCE = Path(paydesk.__file__).parent
_FILLING = {record_of.__name__, record_if_any.__name__, records_of.__name__}
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.S)

Name = tuple[Path, str]
"""A statement's file and name."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Statement:
    """One statement of a file, with the parameters that its head names; `written` is how it stands
    there, with these by name and without comments.
    """

    sql: str
    parameters: tuple[str, ...]
    written: str = ""


@dataclass(frozen=True)
class Call:
    """One call of a statement: its keywords; not all of them are known if it spreads what somebody
    else has made.
    """

    statement: Name
    place: str
    keywords: frozenset[str]
    is_open: bool


@dataclass(frozen=True)
class Filling:
    """One place where a class is filled from rows, and the statements that these come from (none:
    it can't be seen).
    """

    of: Any
    place: str
    statements: frozenset[Name]


@cache
def all_statements() -> dict[Name, Statement]:
    """Every statement of every file, except for the schema's and its steps'."""
    found = {}
    for path in sorted(SOURCE.rglob("*.sql")):
        if {"migrations", "baseline_0165"}.intersection(path.relative_to(SOURCE).parts):
            continue
        loaded = aiosql.from_path(path, "asyncpg", mandatory_parameters=True)
        as_written = aiosql.from_path(path, "sqlite3", mandatory_parameters=True)
        for name in loaded.available_queries:
            if not name.endswith("_cursor"):
                statement = getattr(loaded, name)
                written = _COMMENT.sub("", getattr(as_written, name).sql)
                found[path, name] = Statement(statement.sql, tuple(statement.parameters or ()), written)
    return found


@cache
def all_modules() -> list[ModuleType]:
    """Every module of the service but the one that fills classes,
    and what runs when it is imported.
    """
    names = [found.name for found in pkgutil.walk_packages(paydesk.__path__, "paydesk.")]
    aside = ("paydesk.__main__", record_of.__module__)
    return [importlib.import_module(name) for name in names if name not in aside]


class Reader:
    """Reads one module: its calls of statements, and its fillings of classes."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.path = Path(str(module.__file__))
        self.nodes = list(_inside(ast.parse(self.path.read_text())))
        self.loaded = dict(_loaded(module))
        self._functions = self.functions()

    def calls(self) -> Iterator[Call]:
        """The calls of statements."""
        for function, node in self.nodes:
            if isinstance(node, ast.Call) and (name := self._statement(node.func)):
                keywords, is_open = self._keywords(node, function)
                yield Call(name, self._place(node), frozenset(keywords), is_open)

    def mentioned(self) -> set[Name]:
        """Every statement that is named at all: in full, or by how its name begins
        where it is picked by another.
        """
        return set().union(*(self._picked(node) for _, node in self.nodes))

    def fillings(self) -> Iterator[Filling]:
        """The classes that are filled."""
        for function, node in self.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FILLING:
                of, row = node.args
                names = self._rows(row, function, frozenset())
                yield Filling(self._value(of), self._place(node), frozenset(names or ()))

    def functions(self) -> dict[str, list[_Function]]:
        """Its functions and methods by name."""
        found: dict[str, list[_Function]] = {}
        for _, node in self.nodes:
            if isinstance(node, _Function):
                found.setdefault(node.name, []).append(node)
        return found

    def _place(self, node: ast.expr) -> str:
        return f"{self.path.relative_to(SOURCE)}:{node.lineno}"

    def _statement(self, node: ast.AST) -> Name | None:
        """The statement that `queries.verb_noun` names."""
        if isinstance(node, ast.Attribute) and (path := self.loaded.get(ast.unparse(node.value))):
            return path, node.attr
        return None

    def _picked(self, node: ast.AST) -> set[Name]:
        """The statement that is named, or those one of which is picked by the rest of its name:
        `getattr(queries, f"read_{kind}")`.
        """
        if name := self._statement(node):
            return {name}
        match node:
            case ast.Call(ast.Name("getattr"), [picked, built]):
                begins = _beginning(built)
                files = {self.loaded.get(ast.unparse(one)) for one in ast.walk(picked) if isinstance(one, ast.Name)}
                return {one for one in all_statements() if one[0] in files and one[1].startswith(begins)}
        return set()

    def _value(self, node: ast.expr) -> Any:
        """What an expression such as a class's name means to the module."""
        return eval(ast.unparse(node), vars(self.module))

    def _keywords(self, call: ast.Call, function: _Function | None) -> tuple[set[str], bool]:
        known: set[str] = set()
        is_open = False
        for keyword in call.keywords:
            if keyword.arg is not None:
                known.add(keyword.arg)
            elif (spread := self._keys(keyword.value, function, frozenset())) is not None:
                known |= spread
            else:
                is_open = True
        return known, is_open

    def _keys(self, node: ast.expr, function: _Function | None, seen: frozenset[str]) -> set[str] | None:
        """The keys of a dict that is spread, None if they can't be read here."""
        match node:
            case ast.Dict(keys, values):
                parts = [
                    self._keys(value, function, seen) if key is None else {ast.literal_eval(key)}
                    for key, value in zip(keys, values, strict=True)
                ]
            case ast.Call(ast.Name("dict"), [], keywords):
                parts = [self._keys(one.value, function, seen) if one.arg is None else {one.arg} for one in keywords]
            case ast.Call(ast.Name(name) | ast.Attribute(_, name)) | ast.Attribute(_, name):
                made = self._functions.get(name) or _functions().get(name, [])
                parts = [
                    self._keys(each.value, made[0], seen | {name}) if each.value else None
                    for each in (ast.walk(made[0]) if len(made) == 1 and name not in seen else [])
                    if isinstance(each, ast.Return)
                ] or [None]
            case ast.IfExp(_, left, right) | ast.BinOp(left, ast.BitOr(), right):
                parts = [self._keys(left, function, seen), self._keys(right, function, seen)]
            case ast.Name(name) if name not in seen:
                bound = _bound(name, function)
                parts = [self._keys(each, function, seen | {name}) for each in bound if len(bound) == 1] or [None]
            case _:
                return None
        return None if any(part is None for part in parts) else set().union(*(part for part in parts if part))

    def _rows(self, node: ast.expr, function: _Function | None, seen: frozenset[str]) -> set[Name] | None:
        """The statements whose rows an expression gives, None if that can't be seen."""
        if isinstance(node, ast.Await | ast.Subscript | ast.Starred):
            return self._rows(node.value, function, seen)
        if isinstance(node, ast.Call) and (statement := self._statement(node.func)):
            return {statement}
        match node:
            case ast.Call(ast.Attribute(_, "cursor"), [sql, *_]):
                named = [one.value for one in _choices(sql, function) if isinstance(one, ast.Attribute)]
                return set().union(*map(self._picked, named)) or None
            case ast.Call(func):
                return set().union(*map(self._picked, _choices(func, function))) or None
            case ast.Constant(None):
                return set()
            case ast.IfExp(_, body, orelse):
                parts = [self._rows(body, function, seen), self._rows(orelse, function, seen)]
            case ast.ListComp(ast.Name(taken), [ast.comprehension(ast.Name(bound), rows)]) if taken == bound:
                return self._rows(rows, function, seen)
            case ast.Name(name) if name not in seen:
                parts = [self._rows(each, function, seen | {name}) for each in _bound(name, function)] or [None]
            case _:
                return None
        return None if any(part is None for part in parts) else set().union(*(part for part in parts if part))


@cache
def all_readers() -> list[Reader]:
    """A reader of every module."""
    return [Reader(module) for module in all_modules()]


def _loaded(module: ModuleType) -> Iterator[tuple[str, Path]]:
    """The files of statements that a module can name:
    its own, and those of the modules that it has imported.
    """
    for name, one in vars(module).items():
        if isinstance(one, Statements):
            yield name, one._path
        if isinstance(one, ModuleType) and one.__name__.startswith("paydesk."):
            yield from (
                (f"{name}.{inner}", each._path) for inner, each in vars(one).items() if isinstance(each, Statements)
            )


@cache
def _functions() -> dict[str, list[_Function]]:
    """All functions and methods of the service by name:
    what is made by one that has its name alone can be read.
    """
    found: dict[str, list[_Function]] = {}
    for reader in all_readers():
        for name, functions in reader.functions().items():
            found.setdefault(name, []).extend(functions)
    return found


def _choices(node: ast.expr, function: _Function | None) -> list[ast.expr]:
    """What may be called: all that a name was given, either side of a condition,
    every value of a table.
    """
    match node:
        case ast.Name(name):
            return [choice for each in _bound(name, function) for choice in _choices(each, function)]
        case ast.Subscript(table):
            return [choice for each in _choices(table, function) for choice in _choices(each, function)]
        case ast.IfExp(_, body, orelse):
            return [*_choices(body, function), *_choices(orelse, function)]
        case ast.Dict(_, values):
            return values
        case _:
            return [node]


def _beginning(name: ast.expr) -> str:
    """How a name begins that is put together: f"read_{kind}"."""
    match name:
        case ast.JoinedStr([ast.Constant(str(text)), *_]):
            return text
        case _:
            return ""


def _inside(tree: ast.Module) -> Iterator[tuple[_Function | None, ast.AST]]:
    """Every node of a module, with the outermost function around it."""
    for top in tree.body:
        functions = [top] if isinstance(top, _Function) else []
        if isinstance(top, ast.ClassDef):
            functions = [one for one in top.body if isinstance(one, _Function)]
        within = {id(node): function for function in functions for node in ast.walk(function)}
        for node in ast.walk(top):
            yield within.get(id(node)), node


def _bound(name: str, function: _Function | None) -> list[ast.expr]:
    """What a name stands for in a function: all that is assigned to it,
    and what it runs through.
    """
    found: list[ast.expr] = []
    for node in ast.walk(function) if function else []:
        match node:
            case ast.Assign([ast.Name(target)], value) if target == name:
                found.append(value)
            case ast.AnnAssign(ast.Name(target), _, ast.expr() as value) if target == name:
                found.append(value)
            case ast.AugAssign(ast.Name(target), _, value) | ast.NamedExpr(ast.Name(target), value) if target == name:
                found.append(value)
            case ast.comprehension(ast.Name(target), rows) if target == name:
                found.append(rows)
            case ast.For(ast.Name(target), rows) | ast.AsyncFor(ast.Name(target), rows) if target == name:
                found.append(rows)
    return found
