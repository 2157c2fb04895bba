"""Forms written as JSON Schema, for people, models and the host's checks."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from .forms import (
    NO_DEFAULT,
    Anything,
    Array,
    Choice,
    Field,
    Fixed,
    Foreign,
    Form,
    Limited,
    Named,
    OneOf,
    Record,
    Scalar,
    Table,
    json_types,
)
from .param import keywords

Schema = Dict[str, Any]

#: What values of these Python types are called in JSON Schema.
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def of_input(form: Form) -> Schema:
    """The schema of what is read: arguments, a configuration, an answer."""
    return _Writer(is_output=False).whole(form)


def of_output(form: Form) -> Optional[Schema]:
    """The schema of what is written; ``None`` where it would say nothing."""
    return _Writer(is_output=True).whole(form) or None


class _Writer:
    """Writes one schema. A model reads one plain object more surely than references, so only forms
    that hold themselves get a name and a place under ``$defs``."""

    def __init__(self, *, is_output: bool) -> None:
        self._is_output = is_output
        self._open: List[Named] = []
        self._names: Dict[int, str] = {}
        self._definitions: Schema = {}

    def whole(self, form: Form) -> Schema:
        schema = self.write(form)
        if list(schema) == ["$ref"]:
            # The outermost is always written out: it must be seen to be an object.
            name = schema["$ref"].rpartition("/")[2]
            schema = dict(self._definitions[name])
        if self._definitions:
            schema["$defs"] = {**schema.get("$defs", {}), **self._definitions}
        return schema

    def write(self, form: Form) -> Schema:
        if isinstance(form, Named):
            return self._named(form)
        if isinstance(form, Limited):
            return self._limited(form)
        if isinstance(form, Scalar):
            return {"type": form.json_type, **form.keywords}
        if isinstance(form, Choice):
            return _choice(form)
        if isinstance(form, Array):
            schema: Schema = {"type": "array"}
            item = self.write(form.item)
            if item:
                schema["items"] = item
            if form.unique:
                schema["uniqueItems"] = True
            return schema
        if isinstance(form, Fixed):
            items, count = [self.write(item) for item in form.items], len(form.items)
            return {"type": "array", "prefixItems": items, "minItems": count, "maxItems": count}
        if isinstance(form, Table):
            return self._table(form)
        if isinstance(form, Record):
            return self._record(form)
        if isinstance(form, OneOf):
            return self._one_of(form)
        if isinstance(form, Foreign):
            return self._foreign(form)
        assert isinstance(form, Anything), form
        return {}

    def _named(self, form: Named) -> Schema:
        if any(form is other for other in self._open) or id(form) in self._names:
            name = self._names.get(id(form))
            if name is None:
                name = self._names[id(form)] = self._free_name(form.name)
            return {"$ref": f"#/$defs/{name}"}
        self._open.append(form)
        schema = self.write(form.form)
        self._open.pop()
        if id(form) not in self._names:
            return schema
        self._definitions[self._names[id(form)]] = schema
        return {"$ref": f"#/$defs/{self._names[id(form)]}"}

    def _free_name(self, name: str) -> str:
        taken = {*self._names.values(), *self._definitions}
        free, count = name, 1
        while free in taken:
            count += 1
            free = f"{name}{count}"
        return free

    def _limited(self, form: Limited) -> Schema:
        schema = self.write(form.form)
        said = keywords(form.param, json_types(form.form))
        if "format" in said and schema.get("pattern") and "pattern" not in said:
            del schema["pattern"]
        if form.param.description is not None:
            schema["description"] = form.param.description
        return {**schema, **said}

    def _table(self, form: Table) -> Schema:
        value = self.write(form.value)
        schema: Schema = {"type": "object"}
        if isinstance(form.key, Choice):
            schema["propertyNames"] = {"enum": [str(word) for word in form.key.meanings]}
        if value or "propertyNames" in schema:
            schema["additionalProperties"] = value or True
        return schema

    def _record(self, form: Record) -> Schema:
        members = [member for member in form.fields if self._is_output or member.is_input]
        schema: Schema = {"type": "object"}
        if form.description:
            schema["description"] = form.description
        schema["properties"] = {member.name: self._member(member) for member in members}
        # What is written of a class has all of its members.
        always = self._is_output and form.make is not None
        required = [member.name for member in members if member.required or always]
        if required:
            schema["required"] = required
        if form.others is not None:
            schema["additionalProperties"] = self.write(form.others) or True
        elif not members and not self._is_output:
            # A host takes any key where no property is listed.
            schema["additionalProperties"] = False
        return schema

    def _member(self, member: Field) -> Schema:
        schema = self.write(member.form)
        if member.description:
            schema["description"] = member.description
        if not self._is_output and member.default is not NO_DEFAULT and member.default is not None:
            schema["default"] = member.default
        return schema

    def _one_of(self, form: OneOf) -> Schema:
        options = [self.write(option) for option in form.options]
        null = {"type": "null"}
        rest = [option for option in options if option != null]
        if len(rest) == 1 and len(rest) < len(options) and isinstance(rest[0].get("type"), str):
            # The same, and null: said in one schema.
            only = {**rest[0], "type": [rest[0]["type"], "null"]}
            if "enum" in only:
                only["enum"] = [*only["enum"], None]
            return only
        if all(list(option) == ["type"] for option in options):
            return {"type": [option["type"] for option in options]}
        return {"anyOf": options}

    def _foreign(self, form: Foreign) -> Schema:
        schema = form.output_schema() if self._is_output else form.input_schema()
        definitions = schema.pop("$defs", {})
        recursive = _recursive(definitions)
        for name in recursive:
            self._definitions[name] = _inline(definitions[name], definitions, recursive)
        return dict(_inline(schema, definitions, recursive))


def _choice(form: Choice) -> Schema:
    values = list(form.meanings)
    kinds = {_TYPES.get(type(value), "") for value in values}
    kind = kinds.pop() if len(kinds) == 1 else ""
    if kind == "null":
        return {"type": "null"}
    return {"type": kind, "enum": values} if kind else {"enum": values}


def _recursive(definitions: Schema) -> List[str]:
    """Those definitions that lead back to themselves."""
    leads = {name: _references(schema) for name, schema in definitions.items()}
    for _ in leads:
        leads = {name: to.union(*(leads.get(other, set()) for other in to)) for name, to in leads.items()}
    return [name for name, to in leads.items() if name in to]


def _references(schema: Any) -> "set[str]":
    if isinstance(schema, list):
        return set().union(*(_references(item) for item in schema)) if schema else set()
    if not isinstance(schema, dict):
        return set()
    found = {name for value in schema.values() for name in _references(value)}
    return found | ({schema["$ref"].rpartition("/")[2]} if isinstance(schema.get("$ref"), str) else set())


def _inline(schema: Any, definitions: Schema, kept: List[str]) -> Any:
    """Writes definitions where they are used, but for those that are kept."""
    if isinstance(schema, list):
        return [_inline(item, definitions, kept) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inlined = {keyword: _inline(value, definitions, kept) for keyword, value in schema.items()}
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    if name in definitions and name not in kept:
        del inlined["$ref"]
        return {**_inline(definitions[name], definitions, kept), **inlined}
    return inlined
