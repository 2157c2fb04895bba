"""The plugin that every SDK has: protocol/wire/sdk says what it declares and does."""

import logging
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from plugd_sdk import Context, Error, InitContext, Param, Plugin, Reply

plugin = Plugin("golden", "1.2.3", description="What every SDK makes alike.")
plugin.requires("other", ">=1.0")


@dataclass
class Config:
    word: Annotated[str, "The word to greet with."] = "hello"


@dataclass
class State:
    word: str


def checked(config: Config) -> str:
    if config.word == "bad":
        raise Error("bad_word", "the word is bad")
    return config.word


@plugin.init
def init(config: Config, ctx: InitContext) -> State:
    state = State(checked(config))
    ctx.info("ready")
    return state


@plugin.reload
def reload(config: Config, state: State) -> None:
    state.word = checked(config)


@plugin.operation(
    title="Greet",
    when_to_use="Someone should be greeted.",
    when_not_to_use="They said goodbye.",
    examples=["say hello to Ada", "跟小明打个招呼"],
    category="social",
    read_only=True,
    idempotent=True,
    timeout_ms=5000,
)
def greet(
    name: str,
    ctx: Context,
    times: Annotated[int, Param(minimum=1, maximum=10)] = 1,
    tone: Literal["warm", "cold"] = "warm",
) -> Reply[str]:
    """Greets somebody by name. Gives one friendly line back.

    Args:
        name: Who is greeted.
        times: How often.
        tone: How it sounds.
    """
    line = ", ".join([f"{ctx.state.word} {name}"] * times) + ("!" if tone == "warm" else "")
    return Reply(
        line,
        summary=f"greeted {name}",
        next_actions=[{"operation": "golden.context", "description": "see who asked"}],
    )


@plugin.operation(read_only=True)
def fail(how: Annotated[Literal["named", "fault"], "Which failure."]) -> Any:
    """Fails as it is told to. For tests of failures."""
    if how == "named":
        raise Error("no_such_thing", "there is no such thing", hint="try another", retryable=True)
    raise RuntimeError("a fault of ours")


@plugin.operation(read_only=True)
def context(ctx: Context) -> Any:
    """Tells what a call knows of itself. For tests of contexts."""
    return {
        "call_id": ctx.call_id,
        "session_id": ctx.session_id,
        "traceparent": ctx.traceparent,
        "attempt": ctx.attempt,
        "idempotency_key": ctx.idempotency_key,
        "caller": ctx.caller,
        "locale": ctx.locale,
        "has_time": 0 < ctx.time_left <= 30,
        "cancelled": ctx.cancelled,
    }


@plugin.operation(read_only=True)
def speak(ctx: Context) -> None:
    """Logs, prints and reports how far it is. For tests of what goes beside an answer."""
    ctx.warn("one")
    ctx.debug("unseen")
    print("stray")
    ctx.progress(1, 2, "half")
    ctx.partial({"step": 1})


@plugin.operation
def relay(city: Annotated[str, "A city, handed on as it is."], ctx: Context) -> Any:
    """Hands a call on to another plugin. For tests of calls between plugins."""
    reply = ctx.call("other.lookup", city=city)
    return Reply(reply.data, summary=reply.summary)


@plugin.operation(destructive=True)
def remove(ctx: Context) -> Any:
    """Asks before it removes something. For tests of questions."""
    return "removed" if ctx.ask("Remove it?", bool, name="sure") else "kept"


@plugin.operation(read_only=True)
def child() -> Any:
    """Runs a program that reads all of its standard input. For tests of inherited pipes."""
    return subprocess.run(["cat"], stdout=subprocess.PIPE, check=True).stdout.decode()


@plugin.operation
def vars(ctx: Context) -> Any:
    """Uses what this host does not offer. For tests of features."""
    return ctx.vars.get("count")


@plugin.shutdown
def shutdown() -> None:
    logging.info("bye")


if __name__ == "__main__":
    plugin.serve()
