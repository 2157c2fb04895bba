//! The plugin PLUGIN_NAME: greets people.

use plugd_sdk::{Context, Error, Plugin, operation};

/// Greets somebody by name. Gives one friendly line back.
#[operation(
    read_only,
    idempotent,
    when_to_use = "Somebody is to be greeted, or it is to be seen that the plugin works.",
    examples("say hello to Ada")
)]
fn hello(
    /// Who is greeted.
    #[arg(example = "Ada")]
    name: String,
    cx: &Context,
) -> Result<String, Error> {
    let who = name.trim();
    if who.is_empty() {
        return Err(Error::new("nobody_to_greet", "the name is empty").hint("give a name, such as name=Ada"));
    }
    cx.info(format!("greeting {who}"));
    Ok(format!("Hello, {who}!"))
}

fn plugin() -> Plugin {
    Plugin::new("PLUGIN_NAME", env!("CARGO_PKG_VERSION"))
        .description("Greets people.")
        .operation(hello::operation())
}

fn main() -> std::process::ExitCode {
    plugin().serve()
}

#[cfg(test)]
mod tests;
