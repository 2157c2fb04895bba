#!/usr/bin/env python3
"""The plugin PLUGIN_NAME: greets people."""

from typing import Annotated

from plugd_sdk import Context, Error, Param, Plugin

plugin = Plugin("PLUGIN_NAME", "0.1.0", description="Greets people.")


@plugin.operation(
    when_to_use="Somebody is to be greeted, or it is to be seen that the plugin works.",
    examples=["say hello to Ada"],
    read_only=True,
    idempotent=True,
)
def hello(name: Annotated[str, Param("Who is greeted.", examples=["Ada"])], ctx: Context) -> str:
    """Greets somebody by name. Gives one friendly line back."""
    who = name.strip()
    if not who:
        raise Error("nobody_to_greet", "the name is empty", hint="give a name, such as name=Ada")
    ctx.info(f"greeting {who}")
    return f"Hello, {who}!"


if __name__ == "__main__":
    plugin.serve()
