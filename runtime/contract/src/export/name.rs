//! The one name an operation has in every dialect, and the way back from it.

use plugd_protocol::{OperationId, OperationName, PluginName};
use sha2::{Digest, Sha256};

/// A function's name is at most this long for those who serve models; of `[a-zA-Z0-9_-]`.
pub const SPELLING_MAX: usize = 64;

/// What stands between a plugin's name and an operation's.
const BETWEEN: &str = "__";

/// Bytes of the digest that tells apart what would otherwise be spelled alike; twice as many digits.
const DIGEST_BYTES: usize = 6;

/// At least so much of an operation's name stays readable where a digest is needed.
const READABLE: usize = 24;

/// What an operation is called where a name has no dot: `plugin__operation`.
///
/// It depends on nothing else, so it is the same in every run. Where it would be too long, or could be
/// read in two ways, it ends in `-` and a digest: an operation's name has no `-`, so the two forms are
/// never mistaken for each other.
pub fn spelling(id: &OperationId) -> String {
    let (plugin, operation) = (id.plugin.as_str(), id.operation.as_str());
    let plain = format!("{plugin}{BETWEEN}{operation}");
    if plain.len() <= SPELLING_MAX && is_read_back(plugin) {
        return plain;
    }
    // Every character of a name is one byte.
    let room = SPELLING_MAX - 2 * DIGEST_BYTES - 1 - BETWEEN.len();
    let plugin = &plugin[..plugin.len().min(room - operation.len().min(READABLE))];
    let operation = &operation[..operation.len().min(room - plugin.len())];
    let digest = Sha256::digest(id.to_string());
    let digest: String = digest.iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect();
    format!("{plugin}{BETWEEN}{operation}-{digest}")
}

/// The plugin that a spelling names, where it can be told from the spelling alone.
pub fn plugin_in(spelling: &str) -> Option<PluginName> {
    let (plugin, operation) = spelling.split_once(BETWEEN)?;
    let plugin = PluginName::new(plugin).ok()?;
    let is_plain = spelling.len() <= SPELLING_MAX && OperationName::new(operation).is_ok();
    is_plain.then_some(plugin)
}

/// Whether the first `__` of a plain spelling is the one that was put there.
fn is_read_back(plugin: &str) -> bool {
    !plugin.contains(BETWEEN) && !plugin.ends_with('_')
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn id(plugin: &str, operation: &str) -> OperationId {
        OperationId {
            plugin: PluginName::new(plugin).unwrap(),
            operation: OperationName::new(operation).unwrap(),
        }
    }

    #[test]
    fn a_plain_name_is_read_back_by_its_first_two_underscores() {
        assert_eq!(spelling(&id("desk", "query_status")), "desk__query_status");
        assert_eq!(spelling(&id("my-Plugin_2", "_a__b")), "my-Plugin_2___a__b");
        assert_eq!(plugin_in("my-Plugin_2___a__b"), PluginName::new("my-Plugin_2").ok());
        assert_eq!(plugin_in("desk.query_status"), None);
        assert_eq!(plugin_in("query_status"), None);
    }

    #[test]
    fn what_would_be_spelled_alike_is_told_apart() {
        for (one, other) in [
            (id("a", "b__c"), id("a__b", "c")),
            (id("a", "_b"), id("a_", "b")),
            (id("a__b", "c"), id("a", "b__c")),
        ] {
            assert_ne!(spelling(&one), spelling(&other), "{one} {other}");
        }
        assert_eq!(spelling(&id("a__b", "c")), "a__b__c-57a76311daa4");
    }

    #[test]
    fn c116_long_names_stay_apart_and_readable() {
        let plugin = "p".repeat(40);
        let one = spelling(&id(&plugin, "list_everything_there_is_today"));
        let other = spelling(&id(&plugin, "list_everything_there_is_tomorrow"));
        assert_ne!(one, other);
        for name in [&one, &other] {
            assert_eq!(name.len(), SPELLING_MAX);
            assert!(name.contains("__list_everything_there_"), "{name}");
            assert_eq!(plugin_in(name), None, "{name}");
        }
        assert_eq!(spelling(&id(&plugin, "short")).len(), 47);
        assert_eq!(spelling(&id(&"p".repeat(64), &"o".repeat(64))).len(), SPELLING_MAX);
    }

    /// A generator of numbers that are the same in every run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, bound: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            usize::try_from(self.0 % bound as u64).unwrap()
        }

        fn name(&mut self, alphabet: &[u8], longest: usize) -> String {
            let length = 1 + self.below(longest);
            (0..length).map(|_| char::from(alphabet[self.below(alphabet.len())])).collect()
        }
    }

    #[test]
    fn every_spelling_is_legal_and_belongs_to_one_operation() {
        let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
        let mut spelled: HashMap<String, OperationId> = HashMap::new();
        for round in 0..60_000 {
            // Few characters and short names collide soonest; long ones need the digest.
            let longest = if round % 3 == 0 { 64 } else { 5 };
            let plugin = format!("a{}", numbers.name(b"a_-", longest - 1));
            let id = id(&plugin, &numbers.name(b"a_0", longest));
            let name = spelling(&id);
            let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            assert!(name.len() <= SPELLING_MAX && name.bytes().all(legal), "{id}: {name}");
            assert!(plugin_in(&name).is_none_or(|plugin| plugin == id.plugin), "{id}: {name}");
            if let Some(other) = spelled.insert(name.clone(), id.clone()) {
                assert_eq!(other, id, "both are spelled {name}");
            }
        }
        assert!(spelled.len() > 20_000, "{} different ones", spelled.len());
    }
}
