"""What a call may ask of its host: another plugin, a person, a variable of its session, an event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Generic, Iterable, List, Mapping, Optional, TypeVar

from . import schema
from .annotations import Annotations
from .convert import reader
from .errors import Error
from .forms import Form, Unfit
from .reply import HostReply

T = TypeVar("T")

#: Under which name a single question goes.
ONLY_QUESTION = "answer"


@dataclass(frozen=True)
class HostRequest(Generic[T]):
    """One request of the host, and how its answer is read."""

    method: str
    params: Dict[str, Any]
    #: The feature without which a host cannot answer.
    feature: str
    #: What it is good for: "there is no host to … through".
    what: str
    #: Why not, where the host lacks the feature, and what to do.
    not_offered: str
    hint: str
    read: Callable[[Any], T]
    #: Whether the call's clock stands still meanwhile.
    asks_people: bool = False

    def check_offered(self, features: Iterable[str]) -> None:
        """:raises Error: named ``not_offered`` where the host cannot do this."""
        if self.feature not in features:
            raise Error("not_offered", f"this host offers no {self.not_offered}", hint=self.hint)


@dataclass(frozen=True)
class Question:
    """One of several questions to ask at once, for :meth:`Context.ask_many`."""

    #: Under which the answer comes back: letters, digits, ``_``, ``-`` and ``.``.
    name: str
    #: The question in words, on one line.
    prompt: str
    #: The type of the answer; the host takes no other.
    kind: Any = str
    #: Its schema, where the type does not say enough.
    schema: Optional[Mapping[str, Any]] = None
    #: It is a secret: not shown while it is typed, never logged.
    sensitive: bool = False

    def form(self) -> Form:
        """What the answer looks like."""
        return Annotations("builtins").form(self.kind)

    def to_wire(self) -> Dict[str, Any]:
        """The question as the host takes it."""
        question: Dict[str, Any] = {"name": self.name, "prompt": self.prompt}
        if self.schema is not None or self.kind is not str:
            question["schema"] = self.schema if self.schema is not None else schema.of_input(self.form())
        if self.sensitive:
            question["sensitive"] = True
        return question

    def answer(self, answers: Mapping[str, Any]) -> Any:
        """What was answered, as the type that was wanted."""
        try:
            read, answer = reader(self.form()), answers[self.name]
            return answer if read is None else read(answer)
        except (KeyError, Unfit):
            # The answer may be a secret: it is not quoted.
            message = f"the answer to {self.name} is not of the expected form"
            raise Error("unexpected_reply", message) from None


def call(operation: str, arguments: Optional[Mapping[str, Any]], named: Mapping[str, Any]) -> HostRequest[HostReply]:
    """Use another plugin."""
    return HostRequest(
        method="host/call",
        params={"operation": operation, "arguments": {**(arguments or {}), **named}},
        feature="host_calls",
        what=f"call {operation}",
        not_offered="calls to other plugins",
        hint="do without, or run it under a host that does",
        read=HostReply.from_wire,
    )


def ask_many(questions: Iterable[Question]) -> HostRequest[Dict[str, Any]]:
    """Ask the person behind the call."""
    asked = list(questions)

    def read(result: Any) -> Dict[str, Any]:
        answers = result.get("answers") if isinstance(result, dict) else None
        if not isinstance(answers, dict):
            raise Error("unexpected_reply", "the host answered in a form not expected here")
        return {question.name: question.answer(answers) for question in asked}

    return HostRequest(
        method="host/ask",
        params={"questions": [question.to_wire() for question in asked]},
        feature="host_asks",
        what="ask anybody",
        not_offered="questions to people",
        hint="take what is missing as an argument",
        read=read,
        asks_people=True,
    )


def ask(question: Question) -> HostRequest[Any]:
    """Ask one thing."""
    many = ask_many([question])
    return HostRequest(**{**vars(many), "read": lambda result: many.read(result)[question.name]})


def get_variables(names: List[str]) -> HostRequest[Dict[str, Any]]:
    """Read variables of the session."""
    return _variables({"get": names}, lambda result: dict(_member(result, "vars", {})))


def set_variable(name: str, value: Any) -> HostRequest[None]:
    """Write a variable of the session."""
    return _variables({"set": {name: value}}, lambda result: None)


def compare_and_set(name: str, expected: Any, value: Any) -> HostRequest[bool]:
    """Write a variable of the session if it still is what it was."""
    params = {"compare_and_set": {"name": name, "expected": expected, "value": value}}
    return _variables(params, lambda result: _member(result, "swapped", False) is True)


def emit(event: str, data: Any) -> HostRequest[None]:
    """Tell whoever subscribed to an event."""
    return HostRequest(
        method="host/emit",
        params={"event": event, "data": data},
        feature="host_emit",
        what="emit events",
        not_offered="events",
        hint="do without",
        read=lambda result: None,
    )


def _variables(params: Dict[str, Any], read: Callable[[Any], T]) -> HostRequest[T]:
    return HostRequest(
        method="host/vars",
        params=params,
        feature="host_vars",
        what="keep variables",
        not_offered="session variables",
        hint="do without, or keep it in data_dir",
        read=read,
    )


def _member(result: Any, name: str, default: Any) -> Any:
    return result.get(name, default) if isinstance(result, dict) else default
