"""How JSON values become the Python values that a handler declares, planned once for each form."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from .forms import (
    Anything,
    Array,
    Choice,
    Fixed,
    Foreign,
    Form,
    Limited,
    Named,
    OneOf,
    Read,
    Record,
    Scalar,
    Table,
    Unfit,
    inner,
)
from .scalars import whole

_PLAIN: Dict[str, Tuple[Tuple[type, ...], str]] = {
    "string": ((str,), "expected text"),
    "integer": ((int, float), "expected an integer"),
    "number": ((int, float), "expected a number"),
    "boolean": ((bool,), "expected true or false"),
    "null": ((type(None),), "expected null"),
}


def reader(form: Form) -> Optional[Read]:
    """What turns a JSON value of this form into the Python value; ``None`` where they are the same.

    The host has checked the value against the schema, so what is plain is not looked at again.
    """
    return _Planner(strict=False).plan(form)


def strict_reader(form: Form) -> Read:
    """As :func:`reader`, for a value that nobody has checked: it must be of the form."""
    return _Planner(strict=True).plan(form) or _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


class _Planner:
    """Plans for forms; those that hold themselves meet their own plan again."""

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._named: Dict[int, Optional[Read]] = {}

    def plan(self, form: Form) -> Optional[Read]:
        """The plan for one form."""
        if isinstance(form, Named):
            return self._plan_named(form)
        if isinstance(form, Limited):
            return self.plan(form.form)
        if isinstance(form, Scalar):
            return self._plan_scalar(form)
        if isinstance(form, Choice):
            return self._plan_choice(form)
        if isinstance(form, Array):
            return self._plan_array(form)
        if isinstance(form, Fixed):
            return self._plan_fixed(form)
        if isinstance(form, Table):
            return self._plan_table(form)
        if isinstance(form, Record):
            return self._plan_record(form)
        if isinstance(form, OneOf):
            return self._plan_one_of(form)
        if isinstance(form, Foreign):
            return form.read
        assert isinstance(form, Anything), form
        return None

    def _plan_named(self, form: Named) -> Optional[Read]:
        key = id(form)
        if key in self._named:
            # Met again while its plan is made, or after: look it up when it runs.
            return lambda value: (self._named[key] or _as_it_is)(value)
        self._named[key] = None
        self._named[key] = self.plan(form.form)
        return self._named[key]

    def _plan_scalar(self, form: Scalar) -> Optional[Read]:
        read, (types, expected) = form.read, _PLAIN[form.json_type]
        if not self._strict or form.keywords:
            return read

        def checked(value: Any) -> Any:
            if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
                raise Unfit(expected)
            if form.json_type == "integer" and isinstance(value, float) and not value.is_integer():
                raise Unfit(expected)
            return read(value) if read else value

        return checked

    def _plan_choice(self, form: Choice) -> Optional[Read]:
        meanings = form.meanings
        if not self._strict and all(value is meaning for value, meaning in meanings.items()):
            return None
        expected = "expected one of " + ", ".join(str(value) for value in meanings)

        def read(value: Any) -> Any:
            try:
                return meanings[value]
            except (KeyError, TypeError):
                raise Unfit(expected) from None

        return read

    def _plan_array(self, form: Array) -> Optional[Read]:
        item, make = self.plan(form.item), form.make
        if item is None and make is None and not self._strict:
            return None

        def read(value: Any) -> Any:
            if not isinstance(value, list):
                raise Unfit("expected a list")
            items = value if item is None else _each(item, value)
            return items if make is None else make(items)

        return read

    def _plan_fixed(self, form: Fixed) -> Optional[Read]:
        items, make = [self.plan(item) or _as_it_is for item in form.items], form.make

        def read(value: Any) -> Any:
            if not isinstance(value, list) or len(value) != len(items):
                raise Unfit(f"expected a list of {len(items)} items")
            found = []
            for at, (item, one) in enumerate(zip(items, value)):
                try:
                    found.append(item(one))
                except Unfit as unfit:
                    raise unfit.within(at) from None
            return make(found)

        return read

    def _plan_table(self, form: Table) -> Optional[Read]:
        item, key_of = self.plan(form.value), self._plan_key(form.key)
        if item is None and key_of is None and not self._strict:
            return None

        def read(value: Any) -> Any:
            if not isinstance(value, dict):
                raise Unfit("expected an object")
            found = {}
            for key, one in value.items():
                try:
                    found[key if key_of is None else key_of(key)] = one if item is None else item(one)
                except Unfit as unfit:
                    raise unfit.within(key) from None
            return found

        return read

    def _plan_key(self, form: Form) -> Optional[Read]:
        if isinstance(form, Scalar) and form.json_type == "integer":
            return _whole_key
        return self.plan(form)

    def _plan_record(self, form: Record) -> Optional[Read]:
        members = self._members(form)
        others = self.plan(form.others) if form.others else None
        if form.make is None and not self._strict and others is None and not members:
            return None
        rename, make = _renamer(form, members, others, copy=self._strict), form.make
        known = {field.name for field in form.fields if field.is_input}
        needed = [field.name for field in form.fields if field.is_input and field.required]
        closed = form.others is None and (self._strict or make is not None)

        def read(value: Any) -> Any:
            if not isinstance(value, dict):
                raise Unfit("expected an object")
            for name in needed:
                if name not in value:
                    raise Unfit(f"{name} is missing")
            if closed and not known.issuperset(value):
                raise Unfit(f"expected only the keys {', '.join(sorted(known)) or 'of an empty object'}")
            members = rename(value)
            if make is None:
                return members
            try:
                return make(**members)
            except Unfit:
                raise
            except (TypeError, ValueError) as error:
                # Of a check of the author's own, in __post_init__ for one.
                raise Unfit(str(error)) from error

        return read

    def _members(self, form: Record) -> List["_Member"]:
        """Those members that do not stay what they are, under the name they have."""
        planned = [(field.name, field.attribute, self.plan(field.form)) for field in form.fields if field.is_input]
        return [member for member in planned if member[2] is not None or member[0] != member[1]]

    def _plan_one_of(self, form: OneOf) -> Optional[Read]:
        if not self._strict:
            plans = [self.plan(option) for option in form.options]
            if all(plan is None for plan in plans):
                return None
            if len(plans) == 2 and any(_is_null(option) for option in form.options):
                only = next(plan for plan, option in zip(plans, form.options) if not _is_null(option))
                return lambda value: value if value is None or only is None else only(value)
        strict = _Planner(strict=True)
        options = [strict.plan(option) or _as_it_is for option in form.options]

        def read(value: Any) -> Any:
            first: Optional[Unfit] = None
            for option in options:
                try:
                    return option(value)
                except Unfit as unfit:
                    # What went wrong deepest was most likely meant.
                    if first is None or unfit.path.count("/") > first.path.count("/"):
                        first = unfit
            assert first is not None, "a union has options"
            raise first

        return read


#: The name in JSON, the name in Python, and what is made of the value.
_Member = Tuple[str, str, Optional[Read]]


def arguments_reader(form: Record) -> Optional[Callable[[Dict[str, Any]], Dict[str, Any]]]:
    """What makes keywords for a handler of its arguments; ``None`` where they are ready.

    Members nobody declared are left as they are, for the call itself to refuse.
    """
    planner = _Planner(strict=False)
    members = planner._members(form)
    others = planner.plan(form.others) if form.others else None
    return _renamer(form, members, others, copy=False) if members or others else None


def _renamer(
    form: Record, members: List[_Member], others: Optional[Read], *, copy: bool
) -> Callable[[Dict[str, Any]], Dict[str, Any]]:
    """Reads the members of an object, in place unless another form may want them as they were."""
    known = {field.name for field in form.fields}

    def rename(value: Dict[str, Any]) -> Dict[str, Any]:
        found = dict(value) if copy else value
        for name in [name for name in found if name not in known] if others is not None else ():
            found[name] = _read_member(name, found[name], others)
        for name, attribute, read in members:
            if name in found:
                one = found.pop(name) if name != attribute else found[name]
                found[attribute] = _read_member(name, one, read)
        return found

    return rename


def _read_member(name: str, value: Any, read: Optional[Read]) -> Any:
    try:
        return value if read is None else read(value)
    except Unfit as unfit:
        raise unfit.within(name) from None


def _each(item: Read, values: List[Any]) -> List[Any]:
    if item is whole and float not in map(type, values):
        return values
    found: List[Any] = []
    try:
        for value in values:
            found.append(item(value))
    except Unfit as unfit:
        raise unfit.within(len(found)) from None
    return found


def _whole_key(key: str) -> int:
    try:
        return int(key)
    except ValueError:
        raise Unfit("expected a key that is an integer") from None


def _is_null(form: Form) -> bool:
    bare = inner(form)
    return isinstance(bare, Scalar) and bare.json_type == "null"
