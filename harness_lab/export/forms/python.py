"""Python: a constant that is data, or a call of a class with keywords; read without running it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from harness_lab.errors import InputError
from harness_lab.export.forms.text import comments, mapping, nest, only_file, pick

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness_lab.export.targets.base import Files, Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Python:
    """One assignment: ``CONSTANT = {...}``, or ``CONSTANT = call(key=value, ...)``.

    Parameters
    ----------
    file : str
        Usual path of the file.
    keys : tuple of str
        Dotted keys that belong to us.
    constant : str
        Name that is assigned.
    call : str
        What is called with the top keys; empty: a dict.
    imports : str
        Lines that bring it in.
    decimals : tuple of str
        Keys whose numbers are written as ``Decimal("...")``.
    beside : tuple of (str, str)
        Keys that are constants of their own, and their names.
    """

    file: str
    keys: tuple[str, ...]
    constant: str
    call: str = ""
    imports: str = ""
    decimals: tuple[str, ...] = ()
    beside: tuple[tuple[str, str], ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """Where it lies."""
        return (self.file,)

    def write(self, values: Values, header: tuple[str, ...]) -> dict[str, str]:
        """Return the file."""
        apart = dict(self.beside)
        inside = {key: self._wrapped(key, value) for key, value in values.items() if key not in apart}
        body = self._body(nest(inside))
        lines = f"{self.imports}\n\n" if self.imports else ""
        more = "".join(f"{name} = {values[key]!r}\n" for key, name in self.beside if key in values)
        return {self.file: f"{comments(header, '#')}{lines}{self.constant} = {body}\n{more}"}

    def read(self, files: Files) -> Values:
        """Return what the constant holds; in a file without it, what is said by our names anywhere.

        Raises
        ------
        InputError
            If it is no Python, or says two things by one name.
        """
        text = only_file(files, self.file)
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise InputError(self.file, expected="Python", got=str(error)) from None
        found = {_target(node): node.value for node in tree.body if isinstance(node, ast.Assign)}
        if self.constant not in found:
            return self._anywhere(tree)
        data = mapping(self._data(found[self.constant]), what=self.constant)
        apart = {key: _literal(found[name], self.file) for key, name in self.beside if name in found}
        return pick(data, self.keys) | apart

    def _anywhere(self, tree: ast.Module) -> Values:
        """Return the literals that are given by our names as keywords or keys of a dict, in code of one's own."""
        names = {key.rpartition(".")[2]: key for key in self.keys if key not in dict(self.beside)}
        said = [(names[name], node) for name, node in _named(tree) if name in names and not isinstance(node, ast.Name)]
        values: Values = {}
        for key, node in said:
            value = _literal(node, self.file)
            if values.setdefault(key, value) != value:
                raise InputError(self.file, expected=f"one {key}", got=[values[key], value])
        if not values:
            expected = f"an assignment to {self.constant}, or {', '.join(names)} by name"
            raise InputError(self.file, expected=expected, got="neither")
        return values

    def _wrapped(self, key: str, value: Any) -> Any:
        return Decimal(repr(value)) if key in self.decimals and value is not None else value

    def _body(self, data: dict[str, Any]) -> str:
        if not self.call:
            return _dict(data)
        arguments = "".join(f"    {key}={_dict(value, '    ')},\n" for key, value in data.items())
        return f"{self.call}(\n{arguments})" if arguments else f"{self.call}()"

    def _data(self, node: ast.expr) -> Any:
        if not self.call:
            return _literal(node, self.file)
        if not isinstance(node, ast.Call) or ast.unparse(node.func) != self.call or node.args:
            raise InputError(self.file, expected=f"{self.call}(...) with keywords", got=ast.unparse(node)[:80])
        return {word.arg: _literal(word.value, self.file) for word in node.keywords}


def _dict(value: Any, indent: str = "") -> str:
    if not isinstance(value, dict) or not value:
        return repr(value)
    rows = "".join(f"{indent}    {key!r}: {_dict(item, indent + '    ')},\n" for key, item in value.items())
    return "{\n" + rows + indent + "}"


def _named(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield the keywords of calls and the text keys of dicts, with what is given by them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from ((word.arg, word.value) for word in node.keywords if word.arg is not None)
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from (
                (key.value, value)
                for key, value in pairs
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            )


def _target(node: ast.Assign) -> str:
    return node.targets[0].id if isinstance(node.targets[0], ast.Name) else ""


def _literal(node: ast.expr, what: str) -> Any:
    """Return a literal; ``Decimal("0.82")`` is the float 0.82."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "Decimal" and len(node.args) == 1:
        return float(_literal(node.args[0], what))
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {_literal(key, what): _literal(value, what) for key, value in pairs if key is not None}
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError):
        raise InputError(what, expected="a literal", got=ast.unparse(node)[:80]) from None
