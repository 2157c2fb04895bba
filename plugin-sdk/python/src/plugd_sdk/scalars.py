"""The Python types that are text or numbers in JSON, and how they are read from there."""

from __future__ import annotations

import re
import sys
from typing import Any, Callable, Dict, Optional

from .forms import Scalar, Unfit

#: A time of day; seconds and an offset may be left out. JSON Schema's own ``time`` wants an offset.
TIME_PATTERN = r"^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?$"

_FRACTION = re.compile(r"(?<=:\d\d)\.(\d+)")


def whole(value: Any) -> Any:
    """An integer; JSON Schema takes ``3.0`` for one, too."""
    if value.__class__ is float and value.is_integer():
        return int(value)
    return value


def _iso(value: str) -> str:
    """RFC 3339 as every ``fromisoformat`` reads it: before Python 3.11 it knew no Z and few fractions."""
    value = _FRACTION.sub(lambda match: "." + match.group(1)[:6].ljust(6, "0"), value)
    return value[:-1] + "+00:00" if value[-1:] in "Zz" else value


def _from_text(make: Callable[[str], Any], expected: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, str):
            raise Unfit(expected)
        try:
            return make(value)
        except ValueError:
            raise Unfit(expected) from None

    return read


def _decimal(value: Any) -> Any:
    import decimal

    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise Unfit("expected a number")
    try:
        # By way of its text, 0.1 is 0.1 and not the double next to it.
        return decimal.Decimal(str(value))
    except decimal.InvalidOperation:
        raise Unfit("expected a number") from None


#: Those that every program knows, by their types.
SCALARS: Dict[Any, Scalar] = {
    str: Scalar("string"),
    int: Scalar("integer", read=whole),
    float: Scalar("number"),
    bool: Scalar("boolean"),
    None: Scalar("null"),
    type(None): Scalar("null"),
}


def scalar(kind: type) -> Optional[Scalar]:
    """The form of a type that is text or a number in JSON; ``None`` where it is neither."""
    if kind in SCALARS:
        return SCALARS[kind]
    for module, forms in _OTHERS.items():
        # Whoever names a type has loaded its module; the others need not be.
        if module in sys.modules:
            known = {getattr(sys.modules[module], name): name for name in forms}
            if kind in known:
                return forms[known[kind]](kind)
    for base in (str, int, float):
        if issubclass(kind, base):
            return Scalar(SCALARS[base].json_type, read=_of_author(kind))
    return None


def _of_author(kind: Any) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        try:
            return kind(value)
        except ValueError as error:
            raise Unfit(str(error)) from error

    return read


def _moment(kind: Any) -> Scalar:
    read = _from_text(lambda text: kind.fromisoformat(_iso(text)), "expected a moment such as 2024-12-31T09:30:00Z")
    return Scalar("string", {"format": "date-time"}, read)


def _date(kind: Any) -> Scalar:
    return Scalar("string", {"format": "date"}, _from_text(kind.fromisoformat, "expected a date such as 2024-12-31"))


def _time(kind: Any) -> Scalar:
    read = _from_text(lambda text: kind.fromisoformat(_iso(text)), "expected a time of day such as 09:30")
    return Scalar("string", {"pattern": TIME_PATTERN}, read)


def _uuid(kind: Any) -> Scalar:
    return Scalar("string", {"format": "uuid"}, _from_text(kind, "expected a UUID"))


def _path(kind: Any) -> Scalar:
    return Scalar("string", read=_from_text(kind, "expected a path"))


#: Those of modules that not every program loads, by module and name.
_OTHERS: Dict[str, Dict[str, Callable[[Any], Scalar]]] = {
    "datetime": {"datetime": _moment, "date": _date, "time": _time},
    "decimal": {"Decimal": lambda kind: Scalar("number", read=_decimal)},
    "uuid": {"UUID": _uuid},
    "pathlib": {name: _path for name in ("Path", "PurePath", "PosixPath", "PurePosixPath", "PureWindowsPath")},
}
