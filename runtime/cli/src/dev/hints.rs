//! What a message says to do next, in the words of the prompt: no other command reaches what runs there.

use plugd_protocol::error::ErrorClass;
use plugd_protocol::{CallError, CallResult, ErrorKind, PluginName, Status};

/// What these do at the prompt is for a plugd with a configuration of its own.
const OF_A_CONFIGURATION: &[&str] = &["plugd.toml", "config file", "--config"];

/// What is left to do where the plugin requires another.
pub(super) const NOT_HERE: &str =
    "only this plugin runs here: name it and what it requires in a plugd.toml, and try it there";

/// Has the error of a call say what can be done about it here.
pub(crate) fn in_result(result: &mut CallResult, plugin: &PluginName) {
    for said in result.meta.warnings.iter_mut().chain(&mut result.meta.notes) {
        in_message(said);
    }
    let Some(error) = &mut result.error else { return };
    match result.status {
        Status::NeedsInput => {
            error.hint = Some("call it again with what is missing, as name=VALUE".to_owned())
        }
        Status::NeedsConfirmation => error.hint = Some("call it again with --yes".to_owned()),
        _ => in_error(error, plugin),
    }
}

/// Has an error say what can be done about it here.
pub(crate) fn in_error(error: &mut CallError, plugin: &PluginName) {
    in_message(&mut error.message);
    let Some(hint) = error.hint.take() else { return };
    error.hint = match advice(&hint) {
        _ if hint == NOT_HERE || error.code == ErrorKind::Blocked.code() => Some(NOT_HERE.to_owned()),
        Some(said) => Some(said),
        // It is the author's own.
        None if error.class() == ErrorClass::Plugin => Some(hint),
        None if error.code == ErrorKind::UnknownPlugin.code() => {
            Some(format!("only {plugin} runs here: `list` shows its operations"))
        }
        None if error.class() == ErrorClass::Process => {
            Some("`logs` shows what it said; save a change, or `reload`, and it is started anew".to_owned())
        }
        None => None,
    };
}

/// The same in a text that is shown in any case.
pub(crate) fn in_message(text: &mut String) {
    if let Some(said) = at_the_prompt(text) {
        *text = said;
    }
}

/// Advice with what can be typed here in place of commands, without what names another one; `None` where
/// nothing is left.
fn advice(hint: &str) -> Option<String> {
    let left: Vec<String> = hint.split("; ").filter_map(at_the_prompt).collect();
    (!left.is_empty()).then(|| left.join("; "))
}

/// A text with what can be typed here in place of commands; `None` where it names one that there is not.
fn at_the_prompt(text: &str) -> Option<String> {
    if OF_A_CONFIGURATION.iter().any(|word| text.contains(word)) {
        return None;
    }
    let mut said = Vec::new();
    // Every second piece stood in backticks.
    for (at, piece) in text.split('`').enumerate() {
        said.push(match piece.strip_prefix("plugd ").filter(|_| at % 2 == 1) {
            Some(command) => typed(command)?,
            None => piece.to_owned(),
        });
    }
    Some(said.join("`"))
}

/// What is typed at the prompt for a command; `None` where nothing is.
fn typed(command: &str) -> Option<String> {
    let (name, rest) = command.split_once(' ').unwrap_or((command, ""));
    let word = match (name, rest) {
        (_, "--help") => "help",
        ("describe", operation) if operation.contains('.') => return Some(command.to_owned()),
        ("call", "" | "PLUGIN.OPERATION") => "list",
        ("call", line) => return Some(line.to_owned()),
        ("describe" | "lint" | "list" | "logs", _) => name,
        ("reload" | "restart" | "start", _) => "reload",
        _ => return None,
    };
    Some(word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(hint: &str, expected: Option<&str>) {
        assert_eq!(advice(hint).as_deref(), expected, "{hint}");
    }

    #[test]
    fn what_the_prompt_has_is_named_by_its_word() {
        check("`plugd logs greet` shows what it wrote", Some("`logs` shows what it wrote"));
        check("mend the reason, then `plugd start greet`", Some("mend the reason, then `reload`"));
        check("see `plugd call --help` for the forms", Some("see `help` for the forms"));
        check("`plugd describe greet.hello` shows it", Some("`describe greet.hello` shows it"));
        check("`plugd describe greet` shows all", Some("`describe` shows all"));
        check("did you mean `name`?", Some("did you mean `name`?"));
    }

    #[test]
    fn what_it_has_not_is_left_out() {
        check("`plugd doctor` says why", None);
        check("`plugd --config a.toml calls show c-1` tells", None);
        check("[record] in plugd.toml says how long", None);
        check("mend it; `plugd doctor` says why; `plugd logs x` has it", Some("mend it; `logs` has it"));
    }

    #[test]
    fn the_authors_own_words_stay_and_a_plugin_that_is_down_has_a_way_on() {
        let plugin = PluginName::new("greet").unwrap();
        let hint = |kind, hint: &str| {
            let mut error = CallError::new(kind, "m").hint(hint);
            in_error(&mut error, &plugin);
            error.hint
        };
        let own = "`plugd add x` first";
        assert_eq!(hint(ErrorKind::PluginError, own).as_deref(), Some(own));
        assert!(hint(ErrorKind::Disabled, own).is_some_and(|hint| hint.contains("`reload`")));
        assert!(
            hint(ErrorKind::UnknownPlugin, own).is_some_and(|hint| hint.contains("only greet runs here"))
        );
        assert_eq!(hint(ErrorKind::Internal, own), None);
    }
}
