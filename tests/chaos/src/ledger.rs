//! Whether what must not run twice ran as often as the callers were told.

use std::collections::HashMap;
use std::fs;
use std::io;

use crate::load::{Entry, Said};
use crate::sandbox::Sandbox;

/// What the ledger shows against what the callers were told.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) executions: usize,
    pub(crate) twice: Vec<String>,
    /// Answered, and not in the ledger.
    pub(crate) lost: Vec<String>,
    /// In the ledger, and the caller was told that it did not run.
    pub(crate) denied: Vec<String>,
}

/// Reads the ledger; everything that writes to it must have ended.
pub(crate) fn settle<'a>(sandbox: &Sandbox, entries: impl Iterator<Item = &'a Entry>) -> io::Result<Account> {
    let text = match fs::read_to_string(sandbox.ledger()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    let mut executed: HashMap<&str, usize> = HashMap::new();
    for token in text.lines() {
        *executed.entry(token).or_default() += 1;
    }
    let twice = executed.iter().filter(|(_, count)| **count > 1).map(|(token, _)| (*token).to_owned());
    let mut account =
        Account { executions: text.lines().count(), twice: twice.collect(), ..Account::default() };
    for Entry { token, said } in entries {
        match (said, executed.contains_key(token.as_str())) {
            (Said::Ran, false) => account.lost.push(token.clone()),
            (Said::NotRun, true) => account.denied.push(token.clone()),
            (Said::Ran, true) | (Said::NotRun, false) | (Said::Unknown, _) => {}
        }
    }
    Ok(account)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ran_twice_was_lost_or_was_denied_is_found() {
        let sandbox = Sandbox::new(1).expect("a folder");
        fs::write(sandbox.ledger(), "a\nb\nb\nc\nd\n").expect("a ledger");
        let said = [
            ("a", Said::Ran),
            ("b", Said::Unknown),
            ("c", Said::NotRun),
            ("d", Said::Unknown),
            ("e", Said::Ran),
            ("f", Said::NotRun),
            ("g", Said::Unknown),
        ];
        let entries = said.map(|(token, said)| Entry { token: token.to_owned(), said });
        let account = settle(&sandbox, entries.iter()).expect("readable");
        assert_eq!(account.executions, 5);
        assert_eq!((account.twice, account.lost, account.denied), (one("b"), one("e"), one("c")));
    }

    fn one(token: &str) -> Vec<String> {
        vec![token.to_owned()]
    }
}
