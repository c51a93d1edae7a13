"""What becomes of ids and names: ids are hashed with a local key, and nothing that looks like text gets into a table.

Readers take numbers, times and names only. Here, after all readers, the rest is made sure of:

- Ids (the columns :data:`HASHED`, and ``source``, the file's name) are replaced by a keyed digest, ``h-`` and 16 hex
  digits of BLAKE2b (RFC 7693). Equal ids give equal digests under one key, so records of many machines can be joined
  and are counted once when all use the same key file; without the key nobody can tell which id it was, or try out a
  list of names. The positions ``0``, ``1``, ... that stand for nodes without a name are no ids and stay.
- Names (the columns :data:`NAMES`: models, agents, statuses, versions) stay as they are, unless one looks like an
  address, a path below a home, a key or prose; then it is replaced by ``hidden-`` and a digest.
- What was set aside keeps its reason, but no text that came with it.

Labels are joined before ids are hashed. Whoever reads sees the names of the files; what is written (Parquet, store)
holds their digests.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import pandas as pd

from harness_lab.errors import InputError
from harness_lab.settlements.model_usage import models_of
from harness_lab.settlements.report import ReadReport, SetAside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Ids = Literal["hashed", "kept"]

HASHED: Final = ("run", "node", "parent", "user", "team", "repo", "session")
"""The id columns; ``source`` is hashed part by part."""

NAMES: Final = (
    "agent", "backend", "model", "served_model", "record_unit", "stopped_by", "source_status", "client_version",
    "task_kind", "context", "cost_source", "price_date", "kind", "turn", "status", "path",
)  # fmt: skip
"""Columns of names; they stay as long as they look like names."""

SENTENCES: Final = ("eligible_reason", "context_fields")
"""Columns that may hold more than a name: only what looks like an address, a path or a key is taken out."""

USED: Final = ("model_usage",)
"""Columns of figures by model: they go where a model's name is none."""

_DONE: Final = re.compile(r"h-[0-9a-f]{16}(?:~\d+)?")
_POSITION: Final = re.compile(r"\d{1,6}")
_NUMBERED: Final = re.compile(r"(?s)(.*?)(~\d+)?")
_NAME: Final = re.compile(r"[\w .,+:;/@()\[\]<>~=*#%&'|?!-]{1,120}")
_MOST_WORDS: Final = 6
_SECRET: Final = re.compile(
    r"[\w.+-]+@[\w-]+\.[a-z]{2,}|/home/|/Users/|/root/|[A-Za-z]:\\|~/|\bsk-[\w-]{8,}|\bgh[pousr]_\w{8,}|\bAKIA\w{8,}"
    r"|\bxox[a-z]-|\beyJ[\w-]{8,}|\bAIza[\w-]{8,}|-----BEGIN|\bpassword\b|\bBearer ",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_PLAIN: Final = re.compile(r"[-+]?[\d.,]*(?:e[-+]?\d+)?|nan|inf|true|false|none|null", re.IGNORECASE)
_KEY_BYTES: Final = 32


@dataclass(frozen=True, slots=True, repr=False)
class Key:
    """A local key.

    Parameters
    ----------
    secret : bytes
        What digests are made with.
    note : str
        What a reader of the report should know about it, without the key.
    """

    secret: bytes
    note: str

    def digest(self, text: str) -> str:
        """Return the digest of an id; what is one already, and a number after ``~``, stay."""
        if _DONE.fullmatch(text):
            return text
        found = _NUMBERED.fullmatch(text)
        base, number = (found[1], found[2] or "") if found else (text, "")
        data = base.encode("utf-8", "surrogatepass")
        return f"h-{hashlib.blake2b(data, key=self.secret, digest_size=8).hexdigest()}{number}"

    def file_digest(self, name: str) -> str:
        """Return the digest of a file's name, folder and file apart, with its last suffix (``.jsonl``)."""
        folder, slash, file = name.rpartition("/")
        suffix = Path(file).suffix
        suffix = suffix if re.fullmatch(r"\.[a-z]{1,8}", suffix) else ""
        end = "" if _DONE.fullmatch(file.removesuffix(suffix)) else suffix
        digest = self.digest(file) if end else self.digest(file.removesuffix(suffix))
        return f"{self.digest(folder) + slash if folder else ''}{digest}{suffix}"

    def __repr__(self) -> str:
        return f"Key({self.note!r})"


def default_key_path() -> Path:
    """Return where the key lies if no file is named: in the user's configuration folder."""
    home = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(home) if home else Path.home() / ".config") / "harness_lab" / "ids.key"


def load_key(path: str | os.PathLike[str] | None = None) -> Key:
    """Return the key in a file; a file that does not exist is made, for its owner only.

    Parameters
    ----------
    path : path, optional
        The key file; None: :func:`default_key_path`. Where that place cannot be written to, the key is made up for
        this reading alone, and the note says so.

    Raises
    ------
    InputError
        If the file cannot be read or made, or holds no key.
    """
    place = default_key_path() if path is None else Path(path)
    try:
        secret, shared = _read_or_make(place)
    except OSError as error:
        if path is not None:
            why = os.strerror(error.errno) if error.errno else str(error)
            raise InputError(str(path), expected="a key file that can be read or made", got=why) from None
        return Key(
            secrets.token_bytes(_KEY_BYTES), "ids are hashed with a key for this reading alone; give id_key=FILE"
        )
    mark = hashlib.blake2b(secret, digest_size=4).hexdigest()
    warning = "; others on this computer can read the key file" if shared else ""
    return Key(secret, f"ids are hashed (key {mark}){warning}")


def passing_key(note: str = "") -> Key:
    """Return a key that is made up now and kept nowhere."""
    return Key(secrets.token_bytes(_KEY_BYTES), note)


def _read_or_make(place: Path) -> tuple[bytes, bool]:
    """Return the key, and whether others can read its file."""
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(secrets.token_hex(_KEY_BYTES) + "\n")
            with contextlib.suppress(FileExistsError):  # somebody else was quicker: theirs is the key
                os.link(beside, place)
        finally:
            beside.unlink(missing_ok=True)
    return _parse(place), bool(os.name == "posix" and place.stat().st_mode & 0o077)


def _parse(place: Path) -> bytes:
    expected = f"a key file: {2 * _KEY_BYTES} hex digits, as made where there is none"
    with place.open("rb") as file:
        text = file.read(1_000)
    try:
        secret = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        raise InputError(str(place), expected=expected, got=f"{len(text):,} bytes of something else") from None
    if not 16 <= len(secret) <= 64:
        raise InputError(str(place), expected=expected, got=f"{2 * len(secret)} hex digits")
    return secret


def hash_ids(frame: pd.DataFrame, key: Key) -> pd.DataFrame:
    """Return nodes or calls with their ids and file names hashed; simulated rows (those with a policy) stay."""
    recorded = frame["policy"].isna() if "policy" in frame.columns else None
    found = frame
    for name in (*HASHED, "source"):
        if name in frame.columns:
            change = _of_node if name in {"node", "parent"} else None
            values = _mapped(frame[name], _file(key) if name == "source" else _id(key, change))
            found = found.assign(**{name: values if recorded is None else frame[name].mask(recorded, values)})
    return found


def _id(key: Key, stays: Callable[[str], bool] | None) -> Callable[[str], str]:
    return lambda text: text if stays is not None and stays(text) else key.digest(text)


def _of_node(text: str) -> bool:
    return _POSITION.fullmatch(text) is not None


def _file(key: Key) -> Callable[[str], str]:
    return key.file_digest


def hide_texts(frame: pd.DataFrame, key: Key) -> tuple[pd.DataFrame, list[str]]:
    """Return nodes or calls without what looks like text in the columns of names, and a note for each column."""
    found, notes = frame, []
    for names, fits in ((NAMES, is_name), (SENTENCES, _is_harmless), (USED, _are_names)):
        for name in names:
            if name not in frame.columns:
                continue
            values = frame[name]
            bad = [value for value in values.dropna().unique() if not fits(str(value))]
            if bad:
                hidden = {value: f"hidden-{key.digest(str(value))[2:10]}" for value in bad}
                rows = values.isin(bad)
                new = pd.NA if name in {"context_fields", *USED} else _mapped(values.where(rows), hidden.__getitem__)
                found = found.assign(**{name: values.mask(rows, new)})
                notes.append(f"{int(rows.sum()):,} value(s) of {name} looked like text or a secret and were replaced")
    return found, notes


def is_name(text: str) -> bool:
    """Return whether a text looks like a name: short, few words, no address, path or key."""
    return _NAME.fullmatch(text) is not None and len(text.split()) <= _MOST_WORDS and _is_harmless(text)


def _are_names(text: str) -> bool:
    """Whether figures by model have names for models, and hold nothing else."""
    models = models_of(text)
    return models is not None and all(map(is_name, models))


def _is_harmless(text: str) -> bool:
    return _SECRET.search(text) is None


def _mapped(values: pd.Series, change: Callable[[str], str]) -> pd.Series:
    """Apply a function once to each different text."""
    codes, unique = pd.factorize(values)
    made = pd.array([change(str(text)) for text in unique], dtype="string")
    return pd.Series(made.take(codes, allow_fill=True), index=values.index, name=values.name)


def private(report: ReadReport, names: Iterable[str], key: Key) -> ReadReport:
    """Return a report whose reasons and notes hold no text of the records, and which is stored without file names."""
    aside = tuple(SetAside(item.file, item.line, _scrub(item.reason)) for item in report.set_aside)
    named = {item.file for item in aside}
    notes = "\n".join(report.notes)
    digests = {name: key.file_digest(name) for name in names if name in named or name in notes}
    return replace(report, set_aside=aside, notes=tuple(map(_scrub, report.notes)), digests=digests)


def _scrub(reason: str) -> str:
    """Take what was quoted, and what looks like an address or a key, out of a reason.

    Examples
    --------
    >>> _scrub("output: should be a valid integer, got 'my cat'"), _scrub("output: should be at least 0, got '-5'")
    ('output: should be a valid integer, got a text of 6 characters', "output: should be at least 0, got '-5'")
    """
    return _SECRET.sub("(hidden)", _QUOTED.sub(_unquoted, reason))


def _unquoted(found: re.Match[str]) -> str:
    inner = found[0][1:-1]
    return found[0] if _PLAIN.fullmatch(inner) else f"a text of {len(inner):,} characters"


def settle(
    nodes: pd.DataFrame, calls: pd.DataFrame, *, ids: Ids, key: Key
) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Return the tables as they leave the readers' room, and notes on what was done."""
    nodes, notes = hide_texts(nodes, key)
    calls, more = hide_texts(calls, key)
    notes += [note for note in more if note not in notes]
    if ids == "hashed":
        nodes, calls = hash_ids(nodes, key), hash_ids(calls, key)
        if len(nodes):
            notes.append(key.note)
    return nodes, calls, notes


def check_ids(ids: Any, id_key: object) -> None:
    """Refuse an unknown choice, or a key where ids are kept.

    Raises
    ------
    InputError
        Saying which choices there are.
    """
    if ids not in {"hashed", "kept"}:
        raise InputError("ids", expected="hashed or kept", got=ids)
    if ids == "kept" and id_key is not None:
        raise InputError("id_key", expected="no key where ids are kept", got=str(id_key))
