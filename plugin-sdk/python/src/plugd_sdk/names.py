"""The names of operations and of failures: what they look like, and what was meant by another."""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any, Iterable, List

#: The longest name, in characters.
NAME_MAX = 64
#: What a name is, in words.
RULE = f"expected 1 to {NAME_MAX} of a-z, 0-9 and _"

_NAME = re.compile(r"[a-z0-9_]{1,64}\Z")


def is_name(name: object) -> bool:
    """Whether something is a name."""
    return isinstance(name, str) and _NAME.match(name) is not None


def suggestion(name: str) -> str:
    """The nearest legal spelling of a name, as the end of a sentence; empty where there is none."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    snake = re.sub(r"[^a-z0-9]+", "_", snake).strip("_")[:NAME_MAX]
    return f"; did you mean {snake}?" if snake and snake != name else ""


def misspelt(what: str, given: Iterable[str], known: Iterable[str]) -> List[str]:
    """A sentence for each option that there is not, with the nearest there is."""
    names = list(known)
    return [f"{what} has no option {name}{_nearest(name, names)}" for name in given if name not in names]


def keep_misspelt(kind: Any) -> None:
    """Has a class keep the options that there are not, to be told with all else that is declared wrongly.

    From outside the class, so that type checkers go on refusing them.
    """
    plain = kind.__init__
    known = [name for name in inspect.signature(plain).parameters if name != "self"]

    @functools.wraps(plain)
    def init(self: Any, *given: Any, **options: Any) -> None:
        object.__setattr__(self, "_misspelt", misspelt(kind.__name__, options, known))
        plain(self, *given, **{name: value for name, value in options.items() if name in known})

    kind.__init__ = init


def kept_misspelt(made: Any) -> List[str]:
    """What was kept of one that was made so."""
    return list(made._misspelt)


def _nearest(name: str, known: List[str]) -> str:
    # Only a wrong declaration comes here: no other start pays for the import.
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), known, 1)
    return f"; did you mean {near[0]}?" if near else ""
