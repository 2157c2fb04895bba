"""Write a plugd plugin in Python: one typed function is a whole plugin.

::

    from plugd_sdk import operation, serve

    @operation(read_only=True)
    def hello(name: str, times: int = 1) -> str:
        \"\"\"Greets somebody by name. Gives one friendly line back.

        Args:
            name: Who is greeted.
            times: How often.
        \"\"\"
        return ", ".join([f"hello {name}"] * times)

    if __name__ == "__main__":
        serve()

The schemas, the defaults and the descriptions come from the annotations and the docstring; the host
checks arguments against them before a handler runs. Handlers stay plain functions.

What else there is:

- **A plugin with more to say**: :class:`Plugin`, with a name, a version, hooks and what it requires.
- **State and configuration**: :meth:`Plugin.init` opens what operations share, from a typed configuration.
- **The call**: a parameter annotated :class:`Context` (in an ``async def``, :class:`AsyncContext`) gives
  the deadline, cancellation, log and progress, uses other plugins, and asks the person behind the call.
- **Arguments**: any annotation that has a form in JSON; :class:`Param` says what types cannot.
- **Answers**: any data that has a form in JSON, or a :class:`Reply` with a summary.
- **Failures**: an :class:`Error` with a name and a hint. Any other exception fails that call only, and its
  stack goes to the log, at ``error``.
- **Tests**: a handler is a function to call; :mod:`plugd_sdk.testing` runs a whole plugin in memory.
"""

from .async_context import AsyncContext, AsyncVars
from .context import Context, InitContext, Vars
from .errors import Cancelled, DeclarationError, Error
from .host import Question
from .param import Param
from .plugin import Plugin, default
from .reply import HostReply, NextAction, Reply

__version__ = "0.1.0"

#: Offers a function as an operation of this program; as :meth:`Plugin.operation`.
operation = default.operation
#: Runs this program's operations as a plugin; as :meth:`Plugin.serve`.
serve = default.serve

__all__ = [
    "AsyncContext",
    "AsyncVars",
    "Cancelled",
    "Context",
    "DeclarationError",
    "Error",
    "HostReply",
    "InitContext",
    "NextAction",
    "Param",
    "Plugin",
    "Question",
    "Reply",
    "Vars",
    "operation",
    "serve",
]
