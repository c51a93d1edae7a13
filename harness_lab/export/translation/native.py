"""Reading limits as a system states them: its own files, or a plain TOML or JSON of its settings."""

from __future__ import annotations

import math
import os
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness_lab.errors import InputError, ReadError
from harness_lab.export.forms.text import mapping, parsed
from harness_lab.export.targets.amounts import Count, Unfit
from harness_lab.export.targets.langgraph import SuperSteps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness_lab.export.targets.base import Form, Knob, Target, Values

LARGEST: Final = 5_000_000
"""Bytes of a file that is read."""
_SUFFIXES: Final = {
    "json": (".json",), "python": (".py",), "typescript": (".ts", ".mts", ".cts"), "php": (".php",), "toml": (".toml",),
    "yaml": (".yaml", ".yml"), "shell": (".env", ".sh"), "files": (".txt", ".json", ".md"),
}  # fmt: skip


def limits_of(source: Target, limits: str | os.PathLike[str] | Mapping[str, Any], *, form: str | None = None) -> Values:
    """Return what a system is told.

    Parameters
    ----------
    source : Target
        The system.
    limits : path or mapping
        Its own file; a folder in which its files lie where it looks for them; a TOML or JSON file of its settings by
        name, or such a mapping. A setting may be named without leading dashes, or by its last part.
    form : str, optional
        Language of the file; by its ending if None.

    Raises
    ------
    ReadError
        If nothing can be read there.
    InputError
        If a setting does not exist there, or its value cannot be.
    """
    named = isinstance(limits, (str, os.PathLike))
    found = _from_path(source, Path(limits), form) if named else plain(source, limits)  # type: ignore[arg-type]
    if not found:
        known = ", ".join(dict.fromkeys(_names(source).values())) or "a policy"
        raise InputError("limits", expected=f"settings of {source.title} ({known})", got="none of them")
    return found


def plain(source: Target, data: Mapping[str, Any]) -> Values:
    """Return settings by name, checked one by one; a table named like the system may hold them all."""
    inner = data.get(source.name)
    names = _names(source)
    found: Values = {}
    for name, value in _leaves(inner if isinstance(inner, dict) and len(data) == 1 else data, names):
        if name not in names:
            expected = f"one of {', '.join(dict.fromkeys(names.values())) or 'none: it takes whole policies'}"
            raise InputError(f"setting of {source.title}", expected=expected, got=name)
        found[names[name]] = value
    for knob in source.knobs:
        if found.get(knob.key) is not None:
            _check(knob, found[knob.key])
    return found


def _names(source: Target) -> dict[str, str]:
    """Return every name of a setting, with its key: the key, without dashes in front, and its last part if alone."""
    keys = {knob.key: None for knob in source.knobs} | {
        key: None for form in source.forms.values() for key in getattr(form, "keys", ())
    }
    names = {key: key for key in keys} | {key.lstrip("-"): key for key in keys}
    lasts = [key.rpartition(".")[2] for key in keys]
    return names | {last: key for last, key in zip(lasts, keys, strict=True) if lasts.count(last) == 1}


def _leaves(data: Mapping[str, Any], names: Mapping[str, str], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        name = f"{above}{key}"
        if isinstance(value, dict) and name not in names:
            yield from _leaves(value, names, f"{name}.")
        else:
            yield name, value


def _check(knob: Knob, value: Any) -> None:
    """Refuse what is no amount, and what the system takes for something else."""
    try:
        amount = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError):
        amount = math.nan
    if not (math.isfinite(amount) and amount >= 0):
        raise InputError(knob.key, expected=f"a number of {knob.unit}", got=value)
    if isinstance(knob.amount, (Count, SuperSteps)) and amount % 1:
        raise InputError(knob.key, expected=f"a whole number of {knob.unit}", got=value)
    if isinstance(knob.amount, SuperSteps):
        return  # a limit too small for one call is a limit all the same
    try:
        knob.amount.write(knob.amount.read(value))
    except Unfit as reason:
        raise InputError(
            knob.key, expected="a limit", got=value, hint=f"It {reason}; left out it limits nothing"
        ) from None


def _from_path(source: Target, place: Path, form: str | None) -> Values:
    if "\x00" in str(place):
        raise ReadError(str(place), expected="limits: a file or folder", got="a name with a null character")
    if place.is_dir():
        return _from_folder(source, place, form)
    text = _text(place)
    tried = [form] if form is not None else [one for one in source.forms if place.suffix in _SUFFIXES.get(one, ())]
    failed: InputError | None = None
    for name in tried:
        language = _language(source, name)
        try:
            if found := language.read({_path(language, place): text}):
                return found
        except InputError as error:
            failed = failed or error
    if place.suffix in (".toml", ".json") and form is None and source.knobs:
        return plain(source, _data(place, text))
    if failed is not None:
        raise failed
    endings = ", ".join(ending for one in source.forms for ending in _SUFFIXES.get(one, ()))
    raise ReadError(
        str(place), expected=f"a file of {source.title} ({endings}), or .toml", got=place.suffix or "no ending"
    )


def _from_folder(source: Target, folder: Path, form: str | None) -> Values:
    forms = {form: _language(source, form)} if form is not None else source.forms
    for language in forms.values():
        places = sorted({place for pattern in language.paths for place in folder.glob(pattern) if place.is_file()})
        if places:
            return language.read({place.relative_to(folder).as_posix(): _text(place) for place in places})
    expected = " or ".join(", ".join(language.paths) for language in forms.values())
    raise ReadError(str(folder), expected=f"a folder with {expected}", got="none of them")


def _language(source: Target, form: str) -> Form:
    if form not in source.forms:
        raise InputError(f"form of {source.name}", expected=f"one of {', '.join(source.forms)}", got=form)
    return source.forms[form]


def _path(language: Form, place: Path) -> str:
    """Return where a language would look for a single file: by its name, else by its ending."""
    for pattern in language.paths:
        folder, slash, name = pattern.rpartition("/")
        if fnmatch(place.name, name):
            return f"{folder}{slash}{place.name}"
    return next((one for one in language.paths if Path(one).suffix == place.suffix), language.paths[0])


def _data(place: Path, text: str) -> Mapping[str, Any]:
    if place.suffix == ".json":
        return mapping(parsed(text, what=str(place)), what=str(place))
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ReadError(str(place), expected="TOML", got=str(error)) from None


def _text(place: Path) -> str:
    try:
        if place.stat().st_size > LARGEST:
            raise ReadError(str(place), expected=f"limits, at most {LARGEST:,} bytes", got=f"{place.stat().st_size:,}")
        return place.read_bytes().decode("utf-8")  # every line end as it is
    except OSError as error:
        raise ReadError(str(place), expected="limits: a file or folder", got=os.strerror(error.errno or 0)) from None
    except UnicodeDecodeError as error:
        raise ReadError(str(place), expected="text in UTF-8", got=str(error)) from None
