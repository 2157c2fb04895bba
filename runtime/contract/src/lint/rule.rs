//! The rules by name, each with what to do about it; `docs/lint.md` has them with examples.

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, hint: $hint:literal;)+) => {
        /// What a declaration is looked at for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Rule {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Rule {
            /// All of them.
            pub const ALL: &'static [Rule] = &[$(Rule::$variant),+];

            /// The name in findings; it never changes.
            pub fn name(self) -> &'static str {
                match self { $(Rule::$variant => $name),+ }
            }

            /// What to do about it.
            pub fn hint(self) -> &'static str {
                match self { $(Rule::$variant => $hint),+ }
            }
        }
    };
}

rules! {
    /// The name says nothing about what the operation does.
    VagueName = "vague_name", hint: "name the deed and its object in English, such as query_order_status";
    /// The description is missing or a single phrase.
    ShortDescription = "short_description", hint: "write two sentences at least: what it does, and what is special about its arguments or its answer";
    /// All that a model is told has more than 1,024 characters.
    LongDescription = "long_description", hint: "put the important words first and leave out the rest; what one parameter means belongs to that parameter";
    /// It does not say when it is the right choice.
    NoWhenToUse = "no_when_to_use", hint: "say in when_to_use what people ask for when this is the answer";
    /// It praises itself where it should say what it does.
    Praise = "praise", hint: "say what it does instead: praise helps no model to choose";
    /// A parameter has no description.
    UndescribedParameter = "undescribed_parameter", hint: "describe it in the words of the people who will be asked for it";
    /// An identifier does not show its form.
    IdentifierWithoutPattern = "identifier_without_pattern", hint: "add a pattern or an example, and say how a short form is completed";
    /// A date or time does not show its form.
    DateWithoutExample = "date_without_example", hint: "add an example, such as \"examples\": [\"2024-12-15\"]";
    /// A choice does not show how its values are meant.
    EnumWithoutExample = "enum_without_example", hint: "say in the description what the values mean, or add an example or a default";
    /// A parameter is required although it has a default.
    RequiredWithDefault = "required_with_default", hint: "take it out of required: what has a default need not be given";
    /// A name is required that nobody declared.
    RequiredUndeclared = "required_undeclared", hint: "declare it under properties, or write the name in required as it stands there";
    /// A default is refused by its own schema.
    DefaultDoesNotFit = "default_does_not_fit", hint: "write a default that its schema allows, as JSON and not as text, or leave it out";
    /// A member has a name that nothing goes by.
    UnknownMember = "unknown_member", hint: "write the name that is meant, or take the member out: it has no effect; a name of your own begins with x-";
    /// A setting is written and has no effect beside the others.
    SettingWithoutEffect = "setting_without_effect", hint: "take it out, or declare what it depends on";
    /// It changes something, and nothing says when it must not be used.
    EffectsWithoutLimits = "effects_without_limits", hint: "say in when_not_to_use what it must not be used for: limits prevent more misuse than any praise";
    /// It does not declare whether it changes anything.
    UndeclaredEffects = "undeclared_effects", hint: "declare effects.read_only: confirmation, retries and caching depend on it";
    /// Its effects contradict each other.
    ContradictoryEffects = "contradictory_effects", hint: "declare what it really does: what only reads destroys nothing";
    /// Two operations seem to be for the same purpose.
    Overlap = "overlap", hint: "draw the line in when_not_to_use: name the other operation and say what it is for";
    /// The operation cannot be offered at all.
    Quarantined = "quarantined", hint: "mend the declaration; until then the operation cannot be called";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_legal() {
        let mut names: Vec<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
        let legal = |name: &&str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        assert!(names.iter().all(legal));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Rule::ALL.len());
        assert!(Rule::ALL.iter().all(|rule| !rule.hint().is_empty()));
    }
}
