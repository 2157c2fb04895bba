"""Types that pydantic knows, where it is installed: nothing here imports it before one is used."""

from __future__ import annotations

from typing import Any, Callable, Dict

from .forms import Foreign, Unfit

#: Keywords of pydantic's schemas that tell neither people nor models anything.
_NOISE = ("title", "discriminator")


def knows(kind: Any) -> bool:
    """Whether this is a pydantic model, or another type that says how pydantic reads it."""
    return hasattr(kind, "__get_pydantic_core_schema__") or hasattr(kind, "__pydantic_validator__")


def form(kind: Any) -> Foreign:
    """The form of a type that pydantic knows."""
    import pydantic

    adapter: Any = pydantic.TypeAdapter(kind)

    def read(value: Any) -> Any:
        try:
            return adapter.validate_python(value)
        except pydantic.ValidationError as error:
            raise _unfit(error) from None

    return Foreign(
        name=getattr(kind, "__name__", str(kind)),
        input_schema=_schema(adapter, "validation"),
        output_schema=_schema(adapter, "serialization"),
        read=read,
    )


def _schema(adapter: Any, mode: str) -> Callable[[], Dict[str, Any]]:
    def schema() -> Dict[str, Any]:
        tidied = _tidy(adapter.json_schema(mode=mode))
        assert isinstance(tidied, dict)
        return tidied

    return schema


def _unfit(error: Any) -> Unfit:
    """Pydantic's own words, without the values, which may be secrets."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    first = problems[0]
    more = f"; and {len(problems) - 1} more" if len(problems) > 1 else ""
    return Unfit(first["msg"] + more, "".join(f"/{key}" for key in first["loc"]))


def _tidy(schema: Any) -> Any:
    """Takes out the titles that pydantic makes of names, but leaves alone what is called title."""
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    tidied = {}
    for keyword, value in schema.items():
        if keyword in ("properties", "$defs", "patternProperties"):
            tidied[keyword] = {name: _tidy(inner) for name, inner in value.items()}
        elif keyword in ("default", "const", "enum", "examples"):
            if keyword != "default" or value is not None:
                tidied[keyword] = value
        elif keyword not in _NOISE:
            tidied[keyword] = _tidy(value)
    return tidied
