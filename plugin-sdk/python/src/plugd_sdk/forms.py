"""What values look like in JSON: the one form from which both a schema and a conversion are made.

:mod:`annotations` reads a Python type into a form, :mod:`schema` writes the form as JSON Schema, and
:mod:`convert` plans how a JSON value of that form becomes the Python value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from .param import Param

#: Makes a Python value of a JSON value; raises :class:`Unfit` or :class:`ValueError` where it cannot.
Read = Callable[[Any], Any]

#: The default of a field that has none.
NO_DEFAULT: Any = type("NoDefault", (), {"__repr__": lambda self: "NO_DEFAULT"})()


class Unfit(ValueError):
    """A value is not of its form; says where within it, and what was expected there."""

    def __init__(self, expected: str, path: str = "") -> None:
        super().__init__(expected)
        self.expected = expected
        self.path = path

    def within(self, key: object) -> "Unfit":
        """The same, seen from the value that holds this one under ``key``."""
        return Unfit(self.expected, f"/{key}{self.path}")


class Form:
    """What a value looks like in JSON."""


@dataclass
class Anything(Form):
    """Any JSON value."""


@dataclass
class Scalar(Form):
    """Text, a number, a truth value or null, and what is made of it."""

    #: The type's name in JSON Schema.
    json_type: str
    #: What the schema says beside the type.
    keywords: Mapping[str, Any] = field(default_factory=dict)
    #: ``None`` where the JSON value is used as it is.
    read: Optional[Read] = None


@dataclass
class Choice(Form):
    """One of some values, each of which stands for a Python value."""

    meanings: Dict[Any, Any]


@dataclass
class Array(Form):
    """Any number of items of one form."""

    item: Form
    #: What is made of the list; ``None`` where it stays one.
    make: Optional[Callable[[List[Any]], Any]] = None
    unique: bool = False


@dataclass
class Fixed(Form):
    """So many items, each of its own form."""

    items: List[Form]
    make: Callable[[List[Any]], Any]


@dataclass
class Table(Form):
    """An object whose keys are of one form, and its values of another."""

    value: Form
    #: Of text, of whole numbers written as text, or one of some words.
    key: Form = field(default_factory=Anything)


@dataclass
class Field:
    """A member of an object."""

    #: What it is called in JSON.
    name: str
    #: What it is called in Python.
    attribute: str
    form: Form
    required: bool = True
    #: The JSON value that stands for it where it is left out.
    default: Any = NO_DEFAULT
    description: Optional[str] = None
    #: Whether it is read, and not only written.
    is_input: bool = True


@dataclass
class Record(Form):
    """An object whose members are known by name."""

    fields: List[Field]
    #: What is called with the members as keywords; ``None`` where it stays a dictionary.
    make: Optional[Callable[..., Any]] = None
    description: Optional[str] = None
    #: The form of members that have no name here; ``None`` where there are none.
    others: Optional[Form] = None


@dataclass
class OneOf(Form):
    """A value of one of several forms; the first that fits counts."""

    options: List[Form]


@dataclass
class Limited(Form):
    """A form of which more is said."""

    form: Form
    param: Param


@dataclass(eq=False)
class Named(Form):
    """A form with a name, which may hold itself."""

    name: str
    form: Form = field(default_factory=Anything, repr=False)


@dataclass
class Foreign(Form):
    """A form that another library knows, pydantic for one."""

    name: str
    #: The JSON Schema of what is read, and of what is written.
    input_schema: Callable[[], Dict[str, Any]]
    output_schema: Callable[[], Dict[str, Any]]
    read: Read


def inner(form: Form) -> Form:
    """The form itself, without its name and what more is said of it."""
    while isinstance(form, (Named, Limited)):
        form = form.form
    return form


def json_types(form: Form) -> Tuple[str, ...]:
    """The names in JSON Schema of the types that a value may have; none where that is not known."""
    form = inner(form)
    if isinstance(form, Scalar):
        return (form.json_type,)
    if isinstance(form, (Array, Fixed)):
        return ("array",)
    if isinstance(form, (Record, Table)):
        return ("object",)
    if isinstance(form, OneOf):
        return tuple(kind for option in form.options for kind in json_types(option))
    return ()
