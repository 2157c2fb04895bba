"""What an author says about one parameter beside its type: ``Annotated[int, Param(minimum=1)]``."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

from .names import keep_misspelt, kept_misspelt

Number = Union[int, float]


@dataclass(frozen=True, eq=False)
class Param:
    """What there is to say about a parameter, or a field, beside its type.

    ``Annotated[int, "How often.", Param(minimum=1)]``: plain text is its description. The host checks
    all of it before a handler runs. ``annotated_types`` and pydantic's ``Field`` are understood, too.
    """

    description: Optional[str] = None
    #: What callers write where Python cannot say it: ``Param(name="class")``.
    name: Optional[str] = None
    minimum: Optional[Number] = None
    maximum: Optional[Number] = None
    exclusive_minimum: Optional[Number] = None
    exclusive_maximum: Optional[Number] = None
    multiple_of: Optional[Number] = None
    #: Of text in characters, of a list in items, of an object in keys.
    min_length: Optional[int] = None
    max_length: Optional[int] = None
    #: A regular expression found somewhere in the text; no look-around, no back-references.
    pattern: Optional[str] = None
    #: A format of JSON Schema, such as ``email`` or ``uri``.
    format: Optional[str] = None
    examples: Optional[Sequence[Any]] = None
    #: It is a secret: shown in no message, kept as ``***``.
    sensitive: bool = False
    #: Keywords of JSON Schema for which there is no name here.
    schema: Optional[Dict[str, Any]] = None


keep_misspelt(Param)


def faults_of(metadata: Iterable[Any]) -> List[str]:
    """What is wrong with the :class:`Param` among the metadata of an ``Annotated``."""
    return [fault for item in metadata if isinstance(item, Param) for fault in kept_misspelt(item)]


#: How the members are called in JSON Schema; those whose keyword depends on the type stand apart.
_KEYWORDS = {
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusive_minimum": "exclusiveMinimum",
    "exclusive_maximum": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
    "format": "format",
}
_LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}

#: The attributes by which annotated_types and pydantic say the same.
_FOREIGN = {
    "ge": "minimum",
    "le": "maximum",
    "gt": "exclusive_minimum",
    "lt": "exclusive_maximum",
    "multiple_of": "multiple_of",
    "min_length": "min_length",
    "max_length": "max_length",
    "pattern": "pattern",
    "description": "description",
    "examples": "examples",
    "alias": "name",
}


def gather(metadata: Iterable[Any]) -> Param:
    """Everything that the metadata of an ``Annotated`` says, as one."""
    said: Dict[str, Any] = {}
    for item in metadata:
        if isinstance(item, str):
            said["description"] = item
        elif isinstance(item, Param):
            members = {member.name: getattr(item, member.name) for member in fields(Param)}
            said.update({name: value for name, value in members.items() if value is not None and value is not False})
        else:
            said.update(_foreign(item))
    return Param(**said)


def keywords(param: Param, types: Tuple[str, ...]) -> Dict[str, Any]:
    """What a parameter adds to the schema of its type; ``types`` are the JSON types it may have."""
    schema = {keyword: getattr(param, name) for name, keyword in _KEYWORDS.items() if getattr(param, name) is not None}
    for kind in types or ("string",):
        for side in ("min", "max"):
            length = getattr(param, f"{side}_length")
            if length is not None and kind in _LENGTHS:
                schema[side + _LENGTHS[kind]] = length
    if param.examples is not None:
        schema["examples"] = list(param.examples)
    if param.sensitive:
        schema["x-sensitive"] = True
    schema.update(param.schema or {})
    return schema


def _foreign(item: Any) -> Dict[str, Any]:
    """What an object of another library says, where it says it by the names that they have in common."""
    said = {name: getattr(item, theirs, None) for theirs, name in _FOREIGN.items()}
    for part in getattr(item, "metadata", None) or ():
        said.update(_foreign(part))
    return {name: value for name, value in said.items() if value is not None and not callable(value)}
