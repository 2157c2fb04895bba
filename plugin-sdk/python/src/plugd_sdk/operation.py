"""One operation: a typed function, and what is declared about it."""

from __future__ import annotations

import dataclasses
import inspect
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from . import docstrings, schema
from .annotations import Annotations, NoForm
from .async_context import AsyncContext
from .context import Context
from .convert import arguments_reader
from .errors import INVALID_PARAMS, Error, coded
from .forms import NO_DEFAULT, Anything, Field, Form, Record, Unfit
from .names import RULE, is_name, misspelt, suggestion
from .reply import Reply

Handler = Callable[..., Any]

#: The longest that the host lets a call run, in milliseconds.
TIMEOUT_MAX_MS = 3_600_000
#: The smallest page that the host makes of a result, in bytes.
RESULT_LIMIT_MIN = 256


@dataclass(frozen=True)
class Options:
    """What an author may say about an operation; see :meth:`Plugin.operation`."""

    name: Optional[str] = None
    title: Optional[str] = None
    description: Optional[str] = None
    when_to_use: Optional[str] = None
    when_not_to_use: Optional[str] = None
    examples: Sequence[str] = ()
    category: Optional[str] = None
    audience: Optional[str] = None
    read_only: Optional[bool] = None
    destructive: Optional[bool] = None
    idempotent: Optional[bool] = None
    open_world: Optional[bool] = None
    long_running: bool = False
    cache_ttl: Optional[int] = None
    timeout_ms: Optional[int] = None
    stall_timeout_ms: Optional[int] = None
    confirm: Optional[str] = None
    scope: Optional[str] = None
    result_limit: Optional[int] = None
    input_schema: Optional[Mapping[str, Any]] = None
    output_schema: Optional[Mapping[str, Any]] = None

    def faults(self) -> List[str]:
        """What about the options themselves no host would take."""
        found = []
        for name, least, most in _LIMITS:
            value = getattr(self, name)
            if value is not None and not (_is_int(value) and least <= value <= (most or value)):
                up_to = f" to {most}" if most else ""
                found.append(f"{name} is {value!r}: expected a whole number from {least} up{up_to}")
        for name, words in _WORDS:
            if getattr(self, name) not in (None, *words):
                found.append(f"{name} is {getattr(self, name)!r}: expected one of {', '.join(words)}")
        if isinstance(self.examples, str) or not all(isinstance(example, str) for example in self.examples):
            found.append("examples is a list of sentences")
        if self.cache_ttl is not None and not self.read_only:
            found.append("cache_ttl counts only where the operation is read_only")
        return found


_LIMITS: Tuple[Tuple[str, int, Optional[int]], ...] = (
    ("cache_ttl", 1, None),
    ("timeout_ms", 1, TIMEOUT_MAX_MS),
    ("stall_timeout_ms", 1, None),
    ("result_limit", RESULT_LIMIT_MIN, None),
)
_WORDS = (("audience", ("callers", "plugins")), ("confirm", ("auto", "always", "never")))
#: What a parameter without a type is called where the context is meant.
_CONTEXT_NAMES = ("ctx", "context")
_EFFECTS = ("read_only", "destructive", "idempotent", "open_world")
#: Options that stand in the manifest as they are, before and after the schemas.
_FIRST = ("title", "description", "when_to_use", "when_not_to_use", "examples", "category", "audience")
_LAST = ("timeout_ms", "stall_timeout_ms", "long_running", "confirm", "scope", "cache_ttl", "result_limit")


class Operation:
    """A handler with what is declared about it; its types are read once, at :meth:`prepare`.

    Not when it is declared: its annotations may name what stands further down in the file.
    """

    def __init__(
        self, handler: Handler, options: Mapping[str, Any], namespace: Optional[Mapping[str, Any]] = None
    ) -> None:
        known = [option.name for option in dataclasses.fields(Options)]
        self.handler = handler
        self.options = Options(**{name: value for name, value in options.items() if name in known})
        self._misspelt = misspelt("@operation", options, known)
        self.name = str(self.options.name or getattr(handler, "__name__", ""))
        self.is_async = inspect.iscoroutinefunction(handler)
        #: Which keyword the handler takes the context by.
        self.context_keyword: Optional[str] = None
        #: Makes keywords for the handler of a call's arguments; ``None`` where they are ready.
        self.read: Optional[Callable[[Dict[str, Any]], Dict[str, Any]]] = None
        self._namespace = namespace
        self._record = Record([])
        self._output: Form = Anything()
        self._documented = docstrings.parse(inspect.getdoc(handler))
        self._faults: Optional[List[str]] = None

    def prepare(self) -> List[str]:
        """Reads the handler's types; gives everything that is wrong with the operation, a sentence each."""
        if self._faults is None:
            self._faults = [*self._misspelt, *self.options.faults()]
            if not is_name(self.name):
                self._faults.append(f"this is no name: {RULE}{suggestion(self.name)}")
            given = self.options.input_schema
            if given is not None and given.get("type", "object") != "object":
                self._faults.append(f"its arguments are an object, and input_schema is of type {given['type']!r}")
            self._read_types(self._faults)
        return [f"{self.name or 'an operation'}: {fault}" for fault in self._faults]

    def manifest(self) -> Dict[str, Any]:
        """What the manifest says of it."""
        options = self.options
        said: Dict[str, Any] = {"name": self.name}
        for member in _FIRST:
            said[member] = getattr(options, member) or None
        said["description"] = options.description or self._documented.description
        said["examples"] = list(options.examples) or None
        said["input_schema"] = self.input_schema()
        said["output_schema"] = options.output_schema or schema.of_output(self._output)
        effects = {effect: getattr(options, effect) for effect in _EFFECTS}
        said["effects"] = {effect: value for effect, value in effects.items() if value is not None} or None
        for member in _LAST:
            said[member] = getattr(options, member) or None
        return {member: value for member, value in said.items() if value is not None}

    def input_schema(self) -> Dict[str, Any]:
        """The schema of its arguments."""
        return dict(self.options.input_schema or schema.of_input(self._record))

    def unfit(self, arguments: Mapping[str, Any]) -> Optional[Error]:
        """Why a handler could not be called with these keywords; ``None`` where it could."""
        known = {field.attribute: field for field in self._record.fields}
        faults = [
            f"{field.name} is missing" for name, field in known.items() if field.required and name not in arguments
        ]
        if self._record.others is None:
            faults += [
                f"{name} is not known" for name in arguments if name not in known and name != self.context_keyword
            ]
        return unfit_arguments("; ".join(faults)) if faults else None

    def _read_types(self, faults: List[str]) -> None:
        annotations = Annotations(getattr(self.handler, "__module__", ""), self._namespace)
        try:
            hints = annotations.hints(self.handler)
            signature = inspect.signature(self.handler)
            fields: List[Field] = []
            for name, parameter in signature.parameters.items():
                hint = hints.get(name, parameter.annotation)
                if hint in (Context, AsyncContext):
                    self._take_context(name, hint, faults)
                else:
                    self._take_parameter(annotations, parameter, hint, fields, faults)
            self._record.fields = fields
            self._output = _output_form(annotations, hints.get("return", Any))
        except NoForm as error:
            faults.append(str(error))
            return
        self.read = arguments_reader(self._record)

    def _take_context(self, name: str, kind: Any, faults: List[str]) -> None:
        wanted = AsyncContext if self.is_async else Context
        if kind is not wanted:
            how = "an async def" if self.is_async else "a plain def"
            faults.append(f"{name} is of the type {kind.__name__}, and {how} takes {wanted.__name__}")
        if self.context_keyword is not None:
            faults.append(f"{name} is a second context: one is enough")
        self.context_keyword = name

    def _take_parameter(
        self,
        annotations: Annotations,
        parameter: inspect.Parameter,
        hint: Any,
        fields: List[Field],
        faults: List[str],
    ) -> None:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            self._record.others = annotations.form(hint)
        elif parameter.name == "self":
            faults.append("self has nobody to be: offer the method of an object, plugin.operation(it.method)")
        elif hint is parameter.default is inspect.Parameter.empty and parameter.name in _CONTEXT_NAMES:
            wanted = AsyncContext if self.is_async else Context
            faults.append(f"{parameter.name} has no type: annotate it, {parameter.name}: {wanted.__name__}")
        elif parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
            faults.append(f"{parameter.name}: arguments come by name: take a list, and no * or / parameters")
        else:
            default = NO_DEFAULT if parameter.default is inspect.Parameter.empty else parameter.default
            description = self._documented.parameters.get(parameter.name)
            try:
                fields.append(annotations.field(parameter.name, hint, default, description))
            except NoForm as error:
                faults.append(str(error))


def unfit_arguments(what: str) -> Error:
    """The failure of a call whose arguments are not what the handler takes."""
    return coded(INVALID_PARAMS, f"the arguments do not fit: {what}")


def unfit_argument(unfit: Unfit) -> Error:
    """The failure of a call one of whose arguments is not of its form."""
    return unfit_arguments(f"{unfit.path}: {unfit.expected}" if unfit.path else unfit.expected)


def _output_form(annotations: Annotations, hint: Any) -> Form:
    """The form of a handler's data; nothing is declared of one that only ever gives ``None``."""
    if hint is None or hint is type(None) or hint is Reply:
        return Anything()
    if getattr(hint, "__origin__", None) is Reply:
        hint = hint.__args__[0]
    try:
        return annotations.form(hint)
    except NoForm as error:
        raise NoForm(f"what it returns: {error}") from None


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


#: The names of all options.
OPTION_NAMES = tuple(option.name for option in dataclasses.fields(Options))
