"""Python: a constant that is data, or a call of a class with keywords; read without running it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from harness_lab.errors import InputError
from harness_lab.export.forms.text import comments, mapping, nest, only_file, pick

if TYPE_CHECKING:
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

    def write(self, values: Values, header: tuple[str, ...]) -> dict[str, str]:
        """Return the file."""
        apart = dict(self.beside)
        inside = {key: self._wrapped(key, value) for key, value in values.items() if key not in apart}
        body = self._body(nest(inside))
        lines = f"{self.imports}\n\n" if self.imports else ""
        more = "".join(f"{name} = {values[key]!r}\n" for key, name in self.beside if key in values)
        return {self.file: f"{comments(header, '#')}{lines}{self.constant} = {body}\n{more}"}

    def read(self, files: Files) -> Values:
        """Return what it holds."""
        text = only_file(files, self.file)
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise InputError(self.file, expected="Python", got=str(error)) from None
        found = {_target(node): node.value for node in tree.body if isinstance(node, ast.Assign)}
        if self.constant not in found:
            raise InputError(self.file, expected=f"an assignment to {self.constant}", got=sorted(found))
        data = mapping(self._data(found[self.constant]), what=self.constant)
        apart = {key: _literal(found[name], self.file) for key, name in self.beside if name in found}
        return pick(data, self.keys) | apart

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
