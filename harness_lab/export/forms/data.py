"""Data languages: JSON, TypeScript, PHP, TOML and YAML, one file each, with nested keys."""

from __future__ import annotations

import json
import tomllib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tomli_w

from harness_lab.errors import InputError
from harness_lab.export.forms import php, yaml
from harness_lab.export.forms.text import between, comments, mapping, nest, only_file, parsed, pick

if TYPE_CHECKING:
    from harness_lab.export.targets.base import Files, Values


@dataclass(frozen=True, slots=True, kw_only=True)
class OneFile(ABC):
    """A language in which everything stands in one file.

    Parameters
    ----------
    file : str
        Usual path of the file.
    keys : tuple of str
        Dotted keys that belong to us; others in a file are left alone when it is read.
    """

    file: str
    keys: tuple[str, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """Where it lies."""
        return (self.file,)

    def write(self, values: Values, header: tuple[str, ...]) -> dict[str, str]:
        """Return the file."""
        return {self.file: self.text(values, header)}

    def read(self, files: Files) -> Values:
        """Return what it holds."""
        return pick(mapping(self.data(only_file(files, self.file)), what=self.file), self.keys)

    @abstractmethod
    def text(self, values: Values, header: tuple[str, ...]) -> str:
        """Return the file's content."""

    @abstractmethod
    def data(self, text: str) -> Any:
        """Return what a content says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Json(OneFile):
    """A JSON object; it has no comments."""

    def text(self, values: Values, header: tuple[str, ...]) -> str:
        """Return the object."""
        return _json(nest(values)) + "\n"

    def data(self, text: str) -> Any:
        """Return the object."""
        return parsed(text, what=self.file)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeScript(OneFile):
    """A constant of a declared type.

    Parameters
    ----------
    constant, type : str
        Its name and the type that the compiler holds it against.
    imports : str
        Line that brings the type in.
    renamed : tuple of (str, str)
        Keys that are spelt otherwise in TypeScript.
    """

    constant: str
    type: str
    imports: str = ""
    renamed: tuple[tuple[str, str], ...] = ()

    def text(self, values: Values, header: tuple[str, ...]) -> str:
        """Return the constant; what is None is left out."""
        there = dict(self.renamed)
        plain = {there.get(key, key): value for key, value in values.items() if value is not None}
        lines = f"{self.imports}\n\n" if self.imports else ""
        body = f"export const {self.constant}: {self.type} = {_json(nest(plain))};\n"
        return comments(header, "//") + lines + body

    def data(self, text: str) -> Any:
        """Return the constant."""
        return parsed(
            between(text, f"export const {self.constant}: {self.type} = ", ";\n", what=self.file), what=self.file
        )

    def read(self, files: Files) -> Values:
        """Return what it holds, by our keys."""
        there = dict(self.renamed)
        data = mapping(self.data(only_file(files, self.file)), what=self.file)
        found = pick(data, tuple(there.get(key, key) for key in self.keys))
        here = {other: key for key, other in self.renamed}
        return {here.get(key, key): value for key, value in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Php(OneFile):
    """A file that returns an array."""

    def text(self, values: Values, header: tuple[str, ...]) -> str:
        """Return the file."""
        body = php.array(nest(values))
        return f"<?php\n\n{comments(header, '//')}declare(strict_types=1);\n\nreturn {body};\n"

    def data(self, text: str) -> Any:
        """Return the array."""
        return php.read(between(text, "\nreturn ", ";\n", what=self.file), what=self.file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Toml(OneFile):
    """A TOML file; it has no null, so what is None is left out."""

    def text(self, values: Values, header: tuple[str, ...]) -> str:
        """Return the tables."""
        plain = {key: value for key, value in values.items() if value is not None}
        return comments(header, "#") + tomli_w.dumps(nest(plain))

    def data(self, text: str) -> Any:
        """Return the tables."""
        try:
            return tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InputError(self.file, expected="TOML", got=str(error)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Yaml(OneFile):
    """A YAML file in block style."""

    def text(self, values: Values, header: tuple[str, ...]) -> str:
        """Return the blocks."""
        return comments(header, "#") + yaml.block(nest(values))

    def data(self, text: str) -> Any:
        """Return what the file holds."""
        return yaml.read(text, what=self.file)


def _json(data: Any) -> str:
    """Return JSON that is safe inside a script too: line ends of JavaScript and closing tags are escaped."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("</", "<\\/")
