"""Data languages: JSON, TypeScript, PHP, TOML and YAML, one file each, with nested keys."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tomli_w

from harness_lab.errors import InputError
from harness_lab.export.forms import php, yaml
from harness_lab.export.forms.text import between, comments, mapping, nest, only_file, parsed, pick

if TYPE_CHECKING:
    from harness_lab.export.targets.base import Files, Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Json:
    """A JSON object.

    Parameters
    ----------
    file : str
        Usual path of the file.
    keys : tuple of str
        Dotted keys that belong to us; others in a file are left alone when it is read.
    """

    file: str
    keys: tuple[str, ...]

    def write(self, values: Values, header: tuple[str, ...]) -> dict[str, str]:
        """Return the file; JSON has no comments."""
        return {self.file: _json(nest(values)) + "\n"}

    def read(self, files: Files) -> Values:
        """Return what it holds."""
        return pick(mapping(parsed(only_file(files, self.file), what=self.file), what=self.file), self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeScript:
    """A constant of a declared type.

    Parameters
    ----------
    file, keys
        As for :class:`Json`.
    constant, type : str
        Its name and the type that the compiler holds it against.
    imports : str
        Line that brings the type in.
    renamed : dict of str to str
        Keys that are spelt otherwise in TypeScript.
    """

    file: str
    keys: tuple[str, ...]
    constant: str
    type: str
    imports: str = ""
    renamed: tuple[tuple[str, str], ...] = ()

    def write(self, values: Values, header: tuple[str, ...]) -> dict[str, str]:
        """Return the file."""
        there = dict(self.renamed)
        plain = {there.get(key, key): value for key, value in values.items() if value is not None}
        lines = f"{self.imports}\n\n" if self.imports else ""
        body = f"export const {self.constant}: {self.type} = {_json(nest(plain))};\n"
        return {self.file: comments(header, "//") + lines + body}

    def read(self, files: Files) -> Values:
        """Return what it holds."""
        begin = f"export const {self.constant}: {self.type} = "
        data = parsed(between(only_file(files, self.file), begin, ";\n", what=self.file), what=self.file)
        there = dict(self.renamed)
        found = pick(mapping(data, what=self.file), tuple(there.get(key, key) for key in self.keys))
        here = {other: key for key, other in self.renamed}
        return {here.get(key, key): value for key, value in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Php:
    """A file that returns an array.

    Parameters
    ----------
    file, keys
        As for :class:`Json`.
    """

    file: str
    keys: tuple[str, ...]

    def write(self, values: Values, header: tuple[str, ...]) -> dict[str, str]:
        """Return the file."""
        body = php.array(nest(values))
        return {self.file: f"<?php\n\n{comments(header, '//')}declare(strict_types=1);\n\nreturn {body};\n"}

    def read(self, files: Files) -> Values:
        """Return what it holds."""
        body = between(only_file(files, self.file), "\nreturn ", ";\n", what=self.file)
        return pick(mapping(php.read(body, what=self.file), what=self.file), self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Toml:
    """A TOML file; it has no null, so what is None is left out.

    Parameters
    ----------
    file, keys
        As for :class:`Json`.
    """

    file: str
    keys: tuple[str, ...]

    def write(self, values: Values, header: tuple[str, ...]) -> dict[str, str]:
        """Return the file."""
        plain = {key: value for key, value in values.items() if value is not None}
        return {self.file: comments(header, "#") + tomli_w.dumps(nest(plain))}

    def read(self, files: Files) -> Values:
        """Return what it holds."""
        try:
            data = tomllib.loads(only_file(files, self.file))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InputError(self.file, expected="TOML", got=str(error)) from None
        return pick(data, self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Yaml:
    """A YAML file in block style.

    Parameters
    ----------
    file, keys
        As for :class:`Json`.
    """

    file: str
    keys: tuple[str, ...]

    def write(self, values: Values, header: tuple[str, ...]) -> dict[str, str]:
        """Return the file."""
        return {self.file: comments(header, "#") + yaml.block(nest(values))}

    def read(self, files: Files) -> Values:
        """Return what it holds."""
        return pick(mapping(yaml.read(only_file(files, self.file), what=self.file), what=self.file), self.keys)


def _json(data: Any) -> str:
    """Return JSON that is safe inside a script too: line ends of JavaScript and closing tags are escaped."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("</", "<\\/")
