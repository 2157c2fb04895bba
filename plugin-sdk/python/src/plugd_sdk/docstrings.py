"""Descriptions from docstrings, written in Google's, NumPy's or the reST style."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import Dict, List, Optional

#: Sections of Google's and NumPy's style that describe parameters.
_PARAMETERS = {
    "args",
    "arguments",
    "attributes",
    "fields",
    "keyword args",
    "keyword arguments",
    "keyword parameters",
    "other parameters",
    "parameters",
    "params",
}

#: Sections that end the description and describe no parameter.
_OTHERS = {
    "alternatives",
    "example",
    "examples",
    "note",
    "notes",
    "raise",
    "raises",
    "receives",
    "reference",
    "references",
    "return",
    "returns",
    "see also",
    "todo",
    "warn",
    "warning",
    "warnings",
    "warns",
    "yield",
    "yields",
}

_GOOGLE_SECTION = re.compile(r"([A-Za-z ]+):\s*$")
_GOOGLE_PARAMETER = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY_PARAMETER = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_REST_FIELD = re.compile(r":(\w+)\s*([^:]*):\s*(.*)$")
_REST_PARAMETERS = {"param", "parameter", "arg", "argument", "key", "keyword", "ivar", "var", "attribute"}
_LIST_ITEM = re.compile(r"([-*+•]|\d+[.)])\s")


@dataclass(frozen=True)
class Docstring:
    """What a docstring says."""

    #: What stands before any section; ``None`` where that is nothing.
    description: Optional[str] = None
    #: What it says about each parameter.
    parameters: Dict[str, str] = field(default_factory=dict)


def parse(text: Optional[str]) -> Docstring:
    """Reads a docstring in any of the three styles, or a mixture of them."""
    if not text:
        return Docstring()
    lines = inspect.cleandoc(text).splitlines()
    description: List[str] = []
    parameters: Dict[str, List[str]] = {}
    described = False
    at = 0
    while at < len(lines):
        section = _section(lines, at)
        if section is not None:
            numpy = _is_underlined(lines, at)
            body = at + (2 if numpy else 1)
            at = _end_of_section(lines, body, indented=not numpy)
            if section in _PARAMETERS:
                parameters.update(_parameters(lines[body:at], numpy=numpy))
            described = True
        elif _REST_FIELD.match(lines[at]):
            at = _rest_field(lines, at, parameters)
            described = True
        else:
            # Prose behind the first section is about that, not about what it does.
            if not described:
                description.append(lines[at])
            at += 1
    said = {name: _flow(words) for name, words in parameters.items()}
    return Docstring(_flow(description) or None, {name: words for name, words in said.items() if words})


def _section(lines: List[str], at: int) -> Optional[str]:
    """The section that begins on this line, in lower case."""
    if _is_underlined(lines, at):
        name = lines[at].strip().lower()
        return name if name in _PARAMETERS or name in _OTHERS else None
    match = _GOOGLE_SECTION.match(lines[at])
    name = match.group(1).strip().lower() if match else ""
    return name if name in _PARAMETERS or name in _OTHERS else None


def _is_underlined(lines: List[str], at: int) -> bool:
    below = lines[at + 1].strip() if at + 1 < len(lines) else ""
    return len(below) >= 3 and set(below) in ({"-"}, {"="})


def _end_of_section(lines: List[str], start: int, *, indented: bool) -> int:
    """Google's sections end with their indentation, NumPy's where another one begins."""
    for at in range(start, len(lines)):
        line = lines[at]
        if not line.strip():
            continue
        if _section(lines, at) is not None or _REST_FIELD.match(line):
            return at
        if indented and not line[0].isspace():
            return at
    return len(lines)


def _parameters(lines: List[str], *, numpy: bool) -> Dict[str, List[str]]:
    """The parameters of a section: each begins at its least indentation, what is deeper belongs to it."""
    pattern = _NUMPY_PARAMETER if numpy else _GOOGLE_PARAMETER
    least = min((_indentation(line) for line in lines if line.strip()), default=0)
    found: Dict[str, List[str]] = {}
    names: List[str] = []
    for line in lines:
        match = pattern.match(line.strip()) if _indentation(line) == least and line.strip() else None
        if match:
            names = [name.strip().lstrip("*") for name in match.group(1).split(",")]
            for name in names:
                found[name] = [] if numpy else [match.group(2)]
        else:
            for name in names:
                found[name].append(line)
    return found


def _rest_field(lines: List[str], at: int, parameters: Dict[str, List[str]]) -> int:
    """Takes in ``:param name: …`` with the deeper lines below it; gives the line after it."""
    match = _REST_FIELD.match(lines[at])
    said = [match.group(3)] if match else []
    end = at + 1
    while end < len(lines) and (not lines[end].strip() or lines[end][0].isspace()):
        said.append(lines[end])
        end += 1
    if match and match.group(1) in _REST_PARAMETERS and match.group(2).split():
        # ":param int days:" names the type before the parameter.
        parameters[match.group(2).split()[-1].lstrip("*")] = said
    return end


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _flow(lines: List[str]) -> str:
    """Joins wrapped lines into paragraphs; blank lines and list items stay apart."""
    text = ""
    for line in inspect.cleandoc("\n".join(lines)).splitlines():
        stripped = line.strip()
        if not stripped:
            text += "" if text.endswith("\n\n") else "\n\n"
        elif text.endswith("\n\n") or not text:
            text += stripped
        elif _LIST_ITEM.match(stripped):
            text += "\n" + stripped
        else:
            text += " " + stripped
    return text.strip()
