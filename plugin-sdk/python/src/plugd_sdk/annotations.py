"""Python types read into forms, once, when a plugin is declared."""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import enum
import inspect
import sys
import types
import typing
from typing import Any, Callable, Dict, ForwardRef, List, Mapping, Optional, Tuple, TypeVar, Union

from . import docstrings, pydantic_types
from .convert import strict_reader
from .encode import json_default
from .forms import (
    NO_DEFAULT,
    Anything,
    Array,
    Choice,
    Field,
    Fixed,
    Form,
    Limited,
    Named,
    OneOf,
    Record,
    Scalar,
    Table,
    inner,
)
from .param import faults_of, gather
from .scalars import SCALARS, scalar

_LISTS = {
    list: None,
    collections.abc.Sequence: None,
    collections.abc.MutableSequence: None,
    collections.abc.Collection: None,
    collections.abc.Iterable: None,
    collections.deque: collections.deque,
    set: set,
    frozenset: frozenset,
    collections.abc.Set: frozenset,
    collections.abc.MutableSet: set,
}
_TABLES = {
    dict,
    collections.OrderedDict,
    collections.abc.Mapping,
    collections.abc.MutableMapping,
    collections.defaultdict,
}
_SETS = {set, frozenset, collections.abc.Set, collections.abc.MutableSet}
_UNIONS = {Union, getattr(types, "UnionType", Union)}
#: Wrappers of a type that say nothing about its form, by name: typing_extensions has its own.
_TRANSPARENT = {"Required", "NotRequired", "ReadOnly", "Final", "ClassVar"}


class NoForm(TypeError):
    """A type has no form in JSON; says which, and what to use instead."""


class Annotations:
    """Reads annotations; classes that were read before are known by name."""

    def __init__(self, module: str, namespace: Optional[Mapping[str, Any]] = None) -> None:
        #: What names mean, where an annotation is text.
        self._globals = _names_in(module)
        self._namespace = dict(namespace or {})
        self._named: Dict[Any, Named] = {}
        self._variables: Dict[Any, Any] = {}

    def form(self, annotation: Any) -> Form:
        """The form of a value that is annotated so.

        :raises NoForm: where it has none.
        """
        if isinstance(annotation, (str, ForwardRef)):
            annotation = self._evaluate(annotation)
        if annotation is Any or annotation is object or annotation is inspect.Parameter.empty:
            return Anything()
        if isinstance(annotation, TypeVar):
            return self.form(self._variables.get(annotation, annotation.__bound__ or Any))
        if hasattr(annotation, "__supertype__"):
            return self.form(annotation.__supertype__)
        if _is_alias(annotation):
            return self._name(annotation, annotation.__name__, lambda: self.form(annotation.__value__))
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is not None:
            return self._generic(annotation, origin, arguments)
        return SCALARS[None] if annotation is None else self._class(annotation)

    def hints(self, target: Any) -> Dict[str, Any]:
        """The annotations of a function or a class, as the types they name.

        :raises NoForm: where one of them names nothing.
        """
        try:
            return typing.get_type_hints(target, localns=self._namespace or None, include_extras=True)
        except Exception as error:
            advice = ""
            if sys.version_info < (3, 10) and "|" in str(error):
                advice = "; before Python 3.10, write Optional[…] and Union[…] for |"
            raise NoForm(f"an annotation cannot be read: {error}{advice}") from error

    def _evaluate(self, annotation: Union[str, ForwardRef]) -> Any:
        text = annotation if isinstance(annotation, str) else annotation.__forward_arg__
        holder = types.SimpleNamespace(__annotations__={"it": text}, __module__=None)
        try:
            return typing.get_type_hints(holder, self._globals, self._namespace, include_extras=True)["it"]
        except Exception as error:
            raise NoForm(f"the annotation {text!r} cannot be read: {error}") from error

    def _generic(self, annotation: Any, origin: Any, arguments: Tuple[Any, ...]) -> Form:
        if origin is typing.Annotated:
            faults = faults_of(annotation.__metadata__)
            if faults:
                raise NoForm("; ".join(faults))
            return Limited(self.form(arguments[0]), gather(annotation.__metadata__))
        if origin in _UNIONS:
            return one_of([self.form(argument) for argument in arguments])
        if origin is typing.Literal:
            return Choice({_json_of(value): value for value in arguments})
        if _name_of(origin) in _TRANSPARENT:
            return self.form(arguments[0]) if arguments else Anything()
        if origin is tuple:
            return self._tuple(arguments)
        if origin in _LISTS:
            item = self.form(arguments[0] if arguments else Any)
            return Array(item, _LISTS[origin], unique=origin in _SETS)
        if origin in _TABLES:
            return self._table(arguments)
        if _is_alias(origin):
            return self.form(origin)
        return self._with_variables(annotation, origin, arguments)

    def _with_variables(self, annotation: Any, origin: Any, arguments: Tuple[Any, ...]) -> Form:
        """A generic class of the author's, such as ``Page[Ticket]``."""
        if pydantic_types.knows(annotation):
            return pydantic_types.form(annotation)
        outer, parameters = self._variables, getattr(origin, "__parameters__", ())
        self._variables = {**outer, **dict(zip(parameters, arguments))}
        try:
            return self._class(origin, key=annotation)
        finally:
            self._variables = outer

    def _table(self, arguments: Tuple[Any, ...]) -> Form:
        if len(arguments) == 2:
            key = inner(self.form(arguments[0]))
            is_scalar = isinstance(key, Scalar) and key.json_type in ("string", "integer")
            is_word = isinstance(key, Choice) and all(isinstance(word, str) for word in key.meanings)
            if not (is_scalar or is_word or isinstance(key, Anything)):
                raise NoForm("the keys of an object in JSON are text: use dict[str, …]")
            return Table(self.form(arguments[1]), key)
        return Table(Anything())

    def _tuple(self, arguments: Tuple[Any, ...]) -> Form:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return Array(self.form(arguments[0]), tuple)
        items = [self.form(argument) for argument in arguments if argument != ()]
        return Fixed(items, tuple)

    def _class(self, kind: Any, key: Any = None) -> Form:
        if not isinstance(kind, type):
            raise NoForm(f"{kind!r} has no form in JSON")
        if kind is tuple:
            return Array(Anything(), tuple)
        if kind in _LISTS:
            return Array(Anything(), _LISTS[kind], unique=kind in _SETS)
        if kind in _TABLES:
            return Table(Anything())
        build: Callable[[Any], Form]
        if pydantic_types.knows(kind):
            return pydantic_types.form(kind)
        if issubclass(kind, enum.Enum):
            return Choice({_json_of(member): member for member in kind})
        if dataclasses.is_dataclass(kind):
            build = self._dataclass
        elif issubclass(kind, dict) and hasattr(kind, "__required_keys__"):
            build = self._typed_dict
        elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
            build = self._named_tuple
        else:
            form = scalar(kind)
            if form is None:
                raise NoForm(f"{kind.__name__} has no form in JSON: {_advice(kind)}")
            return form
        outer, self._globals = self._globals, _names_in(kind.__module__)
        try:
            return self._name(key or kind, kind.__name__, lambda: build(kind))
        finally:
            self._globals = outer

    def _name(self, key: Any, name: str, build: Callable[[], Form]) -> Named:
        """What was read before under this key, or what ``build`` reads, which may hold itself."""
        if key not in self._named:
            self._named[key] = Named(name)
            self._named[key].form = build()
        return self._named[key]

    def _dataclass(self, kind: Any) -> Form:
        hints, doc = self.hints(kind), docstrings.parse(own_doc(kind))
        members, faults = [], []
        for member in dataclasses.fields(kind):
            default = member.default
            if member.default_factory is not dataclasses.MISSING:
                default = member.default_factory()
            try:
                found = self.field(
                    member.name,
                    hints.get(member.name, Any),
                    NO_DEFAULT if default is dataclasses.MISSING else default,
                    doc.parameters.get(member.name) or member.metadata.get("description"),
                )
            except NoForm as error:
                faults.append(str(error))
                continue
            found.is_input = member.init
            members.append(found)
        if faults:
            raise NoForm("; ".join(faults))
        return Record(members, kind, doc.description)

    def _typed_dict(self, kind: Any) -> Form:
        doc = docstrings.parse(own_doc(kind))
        members = []
        for name, hint in self.hints(kind).items():
            member = self.field(name, hint, NO_DEFAULT, doc.parameters.get(name))
            # Where annotations are text, the class does not know of these markers.
            marks = {_name_of(mark) for mark in _wrappers(hint)}
            member.required = "Required" in marks or (name in kind.__required_keys__ and "NotRequired" not in marks)
            # A dictionary keeps the names it has.
            member.name = member.attribute
            members.append(member)
        return Record(members, None, doc.description)

    def _named_tuple(self, kind: Any) -> Form:
        hints = self.hints(kind)
        return Fixed([self.form(hints.get(name, Any)) for name in kind._fields], lambda items: kind(*items))

    def field(self, name: str, annotation: Any, default: Any, description: Optional[str]) -> Field:
        """The member that a parameter or a field makes.

        :raises NoForm: where its type has none; says which it is.
        """
        try:
            form = self.form(annotation)
        except NoForm as error:
            raise NoForm(f"{name}: {error}") from None
        said = gather([part.param for part in _limits(form)])
        has_default = default is not NO_DEFAULT
        declared = _json_default(default) if has_default else NO_DEFAULT
        _check_default(name, form, declared)
        return Field(
            name=said.name or name,
            attribute=name,
            form=form,
            required=not has_default,
            default=declared,
            description=said.description or description,
        )


def one_of(options: List[Form]) -> Form:
    """The union of some forms."""
    flat: List[Form] = []
    for option in options:
        for part in option.options if isinstance(option, OneOf) else [option]:
            if isinstance(part, Anything):
                return part
            if part not in flat:
                flat.append(part)
    if SCALARS[float] in flat and SCALARS[int] in flat:
        flat.remove(SCALARS[int])
    return flat[0] if len(flat) == 1 else OneOf(flat)


def own_doc(kind: type) -> Optional[str]:
    """A class's docstring, unless Python wrote it."""
    doc = kind.__dict__.get("__doc__")
    return None if doc is None or doc.startswith(f"{kind.__name__}(") else str(doc)


def _names_in(module: str) -> Dict[str, Any]:
    return vars(sys.modules[module]) if module in sys.modules else {}


def _limits(form: Form) -> List[Limited]:
    """What is said of a value, the outermost last: that counts."""
    found: List[Limited] = []
    while isinstance(form, Limited):
        found.insert(0, form)
        form = form.form
    return found


def _wrappers(hint: Any) -> List[Any]:
    found = []
    while typing.get_origin(hint) is not None:
        found.append(typing.get_origin(hint))
        hint = (typing.get_args(hint) or (None,))[0]
    return found


def _name_of(special: Any) -> str:
    return getattr(special, "_name", None) or getattr(special, "__name__", "") or ""


def _is_alias(annotation: Any) -> bool:
    return type(annotation).__name__ == "TypeAliasType"


def _json_of(value: Any) -> Any:
    plain = value.value if isinstance(value, enum.Enum) else value
    if plain is not None and not isinstance(plain, (str, int, float, bool)):
        raise NoForm(f"{value!r} has no form in JSON: use text or numbers as values")
    return plain


def _json_default(default: Any) -> Any:
    """A default as JSON has it; one that JSON does not have is not declared."""
    try:
        return json_default(default)
    except (TypeError, ValueError):
        return NO_DEFAULT


def _check_default(name: str, form: Form, default: Any) -> None:
    """Refuses a default that is not of its type, but for None, by which Python says that nothing was given."""
    items = default if isinstance(default, list) else [default]
    # An object's members are written and read by other names: those are left to Python.
    if default is NO_DEFAULT or default is None or not all(isinstance(item, (str, int, float)) for item in items):
        return
    try:
        strict_reader(form)(default)
    except (TypeError, ValueError) as error:
        raise NoForm(f"{name}: its default is {default!r}: {error}") from None


def _advice(kind: type) -> str:
    if issubclass(kind, (bytes, bytearray, memoryview)):
        return "use str, with base64 where it is no text"
    if kind.__name__ == "timedelta":
        return "use a number of seconds"
    if kind.__name__ in ("Context", "AsyncContext", "InitContext"):
        return "it is a parameter of its own, not part of another"
    return "make it a dataclass"
