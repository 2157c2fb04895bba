"""Python values written as JSON, on one line."""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import json
import math
import sys
import typing
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from .param import gather

Write = Callable[[Any], Any]


class NotJson(ValueError):
    """A value cannot be written as JSON; says which part of it, and why."""


def dumps(value: Any) -> str:
    """A value as JSON, without spaces or line breaks.

    Dataclasses, enumerations, dates, sets and the like are written as their schemas say.

    :raises NotJson: where JSON has no such value.
    """
    try:
        return _encode(value)
    except Exception as error:
        raise NotJson(_why_not(value, "it", []) or str(error)) from error


def to_bytes(text: str) -> bytes:
    """JSON as UTF-8; half a surrogate pair is no text, and becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def json_default(value: Any) -> Any:
    """A value as JSON has it, and as a schema can show it."""
    return json.loads(dumps(value))


def _write_unknown(value: Any) -> Any:
    """What stands for a value that JSON does not know, looked up by its class."""
    kind = value.__class__
    write = _writers.get(kind)
    if write is None:
        write = _writers[kind] = _writer(kind)
    return write(value)


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_write_unknown).encode


def _number(value: Any) -> Union[int, float]:
    if not value.is_finite():
        raise NotJson(f"{value} is no number in JSON")
    return int(value) if value == value.to_integral_value() else float(value)


def _moment(value: Any) -> Any:
    # As everywhere in Python, one without a zone is in local time.
    return (value if value.tzinfo else value.astimezone()).isoformat()


def _iso(value: Any) -> Any:
    return value.isoformat()


#: How values are written, by class once one was seen.
_writers: Dict[type, Write] = {set: list, frozenset: list}

#: How values of known classes are written, and those derived from them. By name, since a program that
#: has no such value need not load its module either.
_KNOWN: Tuple[Tuple[str, str, Write], ...] = (
    ("enum", "Enum", lambda value: value.value),
    ("datetime", "datetime", _moment),
    ("datetime", "date", _iso),
    ("datetime", "time", _iso),
    ("decimal", "Decimal", _number),
    ("uuid", "UUID", str),
    ("pathlib", "PurePath", str),
    ("collections", "deque", list),
)


def _writer(kind: type) -> Write:
    for module, name, write in _KNOWN:
        base = getattr(sys.modules.get(module), name, None)
        if base is not None and issubclass(kind, base):
            return write
    if hasattr(kind, "__pydantic_serializer__") and hasattr(kind, "model_dump"):
        return lambda value: value.model_dump(mode="json", by_alias=True)
    if dataclasses.is_dataclass(kind):
        return _dataclass_writer(kind)
    if issubclass(kind, collections.abc.Mapping):
        return dict
    if issubclass(kind, (collections.abc.Set, collections.abc.ValuesView)):
        return list
    if hasattr(kind, "tolist"):
        # Arrays and numbers of numpy and its kin.
        return lambda value: value.tolist()
    return _refuse


def _dataclass_writer(kind: type) -> Write:
    names = dataclass_names(kind)
    return lambda value: {name: getattr(value, attribute) for attribute, name in names.items()}


def dataclass_names(kind: Any) -> Dict[str, str]:
    """What the fields of a dataclass are called in JSON, where ``Param(name=…)`` says so."""
    try:
        hints = typing.get_type_hints(kind, include_extras=True)
    except Exception:
        hints = {}
    names = {}
    for member in dataclasses.fields(kind):
        metadata = getattr(hints.get(member.name), "__metadata__", ())
        names[member.name] = gather(metadata).name or member.name
    return names


def _refuse(value: Any) -> Any:
    raise NotJson(_no_form(value))


def _no_form(value: Any) -> str:
    advice = ""
    if isinstance(value, (bytes, bytearray)):
        advice = ": decode it, or use base64"
    elif isinstance(value, collections.abc.Awaitable):
        advice = ": is an await missing?"
    elif isinstance(value, collections.abc.Iterator):
        advice = ": make it a list"
    return f"{type(value).__name__} has no form in JSON{advice}"


def _why_not(value: Any, place: str, outer: List[int]) -> Optional[str]:
    """What about a value keeps it from being JSON; looked for only once it was refused."""
    if id(value) in outer:
        return f"{place} holds itself"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{place} is {value}, and JSON has no such number"
    if value is None or isinstance(value, (str, int, float, bool)):
        return None
    if len(outer) >= 200:
        return f"{place} is nested too deep"
    outer = [*outer, id(value)]
    if isinstance(value, (dict, list, tuple)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if key is not None and not isinstance(key, (str, int, float, bool)):
                return f"{place} has the key {key!r}, and keys in JSON are text"
            why = _why_not(item, f"{place}[{key!r}]", outer)
            if why:
                return why
        return None
    try:
        written = _write_unknown(value)
    except Exception as error:
        return f"{place}: {error}"
    return _why_not(written, place, outer)
