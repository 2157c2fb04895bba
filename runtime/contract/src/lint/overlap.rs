//! Operations whose purposes overlap, so that a model cannot know which one is meant.

use std::collections::{BTreeMap, BTreeSet};

use plugd_protocol::control::LintFinding;
use plugd_protocol::{Operation, OperationId};

use super::text::contains_word;
use super::words::{GENERIC, Word, by_token, words_of};
use super::{Rule, finding, is_for_models};
use crate::export::{one_line, spelling};

/// More pairs are not listed: whoever has so many knows.
pub const OVERLAPS_MAX: usize = 200;

/// Descriptions this much alike leave nothing to choose by, whatever the names.
const DESCRIPTIONS_ALIKE: f32 = 0.85;

/// All that is said must be this much alike where a name has a word that the other one does not mention,
const NAMES_APART: f32 = 0.8;

/// this much where neither has,
const NAMES_ALIKE: f32 = 0.5;

/// and this much where both names mean the same.
const NAMES_SAME: f32 = 0.35;

/// What a word counts by where it stands.
const IN_NAME: f32 = 1.5;
const IN_DESCRIPTION: f32 = 1.0;
const IN_WHEN_TO_USE: f32 = 0.4;

/// So many of the shared words are told.
const SHARED_MAX: usize = 6;

/// Two operations that seem to be for the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Overlap {
    /// The one whose name comes first.
    pub one: OperationId,
    /// The other.
    pub other: OperationId,
    /// Both, the words they share, and what to do.
    pub finding: LintFinding,
}

/// Pairs of operations that seem to be for the same, each pair once, in an order that depends on names only.
///
/// A pair of which one says in `when_not_to_use` what the other is for is none.
pub fn overlaps<'a>(
    operations: impl IntoIterator<Item = (&'a OperationId, &'a Operation)>,
    of: impl Fn(&OperationId) -> bool,
) -> Vec<LintFinding> {
    let mut pairs = overlapping(operations, of);
    let more = pairs.split_off(pairs.len().min(OVERLAPS_MAX));
    let mut findings: Vec<LintFinding> = pairs.into_iter().map(|pair| pair.finding).collect();
    findings.extend(more.first().map(|pair| {
        let message = format!("there are more pairs like the {OVERLAPS_MAX} above");
        finding(pair.one.to_string(), Rule::Overlap, "", message)
    }));
    findings
}

/// The same pairs by their names: at most one more than [`OVERLAPS_MAX`], which says that there are more.
pub fn overlapping<'a>(
    operations: impl IntoIterator<Item = (&'a OperationId, &'a Operation)>,
    of: impl Fn(&OperationId) -> bool,
) -> Vec<Overlap> {
    let offered = operations.into_iter().filter(|(_, operation)| is_for_models(operation));
    let mut purposes: Vec<Purpose<'a>> = offered.map(|(id, operation)| Purpose::of(id, operation)).collect();
    purposes.sort_by(|one, other| one.id.cmp(other.id));
    let mut pairs = Vec::new();
    for (one, other) in candidates(&purposes) {
        let (one, other) = (&purposes[one], &purposes[other]);
        if (of(one.id) || of(other.id))
            && one.overlaps(other)
            && !one.is_told_from(other)
            && !other.is_told_from(one)
        {
            let finding = one.found_with(other);
            pairs.push(Overlap { one: one.id.clone(), other: other.id.clone(), finding });
            if pairs.len() > OVERLAPS_MAX {
                break;
            }
        }
    }
    pairs
}

/// Pairs that have a telling word in common; all others are far apart.
fn candidates(purposes: &[Purpose<'_>]) -> BTreeSet<(usize, usize)> {
    /// A word of more operations than this tells nothing alone: their names or descriptions decide.
    const COMMON: usize = 60;
    let mut by_word: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut by_text: BTreeMap<(bool, Vec<&str>), Vec<usize>> = BTreeMap::new();
    for (number, purpose) in purposes.iter().enumerate() {
        purpose.all.keys().for_each(|word| by_word.entry(word).or_default().push(number));
        for (is_name, words) in [(true, &purpose.name), (false, &purpose.described)] {
            let key = (is_name, words.keys().map(String::as_str).collect());
            by_text.entry(key).or_default().push(number);
        }
    }
    let telling = by_word.into_values().filter(|numbers| numbers.len() <= COMMON);
    let alike = by_text.into_iter().filter(|((_, words), _)| !words.is_empty()).map(|(_, numbers)| numbers);
    let mut pairs = BTreeSet::new();
    for numbers in telling.chain(alike) {
        for (at, one) in numbers.iter().enumerate() {
            // Of very many that are alike the first ones are enough.
            pairs.extend(numbers[at + 1..].iter().take(OVERLAPS_MAX).map(|other| (*one, *other)));
        }
    }
    pairs
}

/// What an operation is for, in words that can be compared.
struct Purpose<'a> {
    id: &'a OperationId,
    /// Its description, on one line.
    text: String,
    /// Where it says what it is not for.
    limits: String,
    title: String,
    name: BTreeMap<String, Word>,
    described: BTreeMap<String, Word>,
    /// Every word with what it counts here.
    all: BTreeMap<String, (Word, f32)>,
    /// What is done: a bit for each meaning of the verb; 0 where that is not known.
    deeds: u64,
}

impl<'a> Purpose<'a> {
    fn of(id: &'a OperationId, operation: &Operation) -> Purpose<'a> {
        let text = |text: &Option<String>| text.as_deref().map(words_of).unwrap_or_default();
        let named = words_of(id.operation.as_str());
        let described = text(&operation.description);
        let deeds = deeds(&named, &described);
        let when = by_token(text(&operation.when_to_use));
        let (name, described) = (by_token(named), by_token(described));
        let mut all: BTreeMap<String, (Word, f32)> = BTreeMap::new();
        for (words, weight) in [(&name, IN_NAME), (&described, IN_DESCRIPTION), (&when, IN_WHEN_TO_USE)] {
            for (token, word) in words {
                all.entry(token.clone()).or_insert_with(|| (word.clone(), weight * word.weight));
            }
        }
        let lower = |text: &Option<String>| text.as_deref().unwrap_or_default().to_lowercase();
        Purpose {
            id,
            text: one_line(&lower(&operation.description)),
            limits: lower(&operation.when_not_to_use),
            title: lower(&operation.title),
            name,
            described,
            all,
            deeds,
        }
    }

    fn overlaps(&self, other: &Purpose<'_>) -> bool {
        let descriptions = likeness(&plain(&self.described), &plain(&other.described));
        let deeds_apart = self.deeds != 0 && other.deeds != 0 && self.deeds & other.deeds == 0;
        if deeds_apart {
            // Different things are done, unless one text was copied from the other.
            return !self.text.is_empty() && self.text == other.text;
        }
        let enough = if self.has_a_word_of_its_own(other) || other.has_a_word_of_its_own(self) {
            NAMES_APART
        } else if !self.name.is_empty() && self.name.keys().eq(other.name.keys()) {
            NAMES_SAME
        } else {
            NAMES_ALIKE
        };
        descriptions >= DESCRIPTIONS_ALIKE || likeness(&counted(&self.all), &counted(&other.all)) >= enough
    }

    /// Whether its name has a word, the deed aside, that the other one does not mention.
    fn has_a_word_of_its_own(&self, other: &Purpose<'_>) -> bool {
        self.name.values().any(|word| {
            word.weight > GENERIC && word.deeds != self.deeds && !other.all.contains_key(&word.token)
        })
    }

    /// Whether it says what the other one is for.
    fn is_told_from(&self, other: &Purpose<'_>) -> bool {
        let (plugin, operation) = (other.id.plugin.as_str(), other.id.operation.as_str());
        let mut names = vec![other.id.to_string(), spelling(other.id)];
        if operation != self.id.operation.as_str() {
            names.extend([operation.to_owned(), operation.replace('_', " ")]);
        }
        // One letter, or one common word, stands in many a text without naming anything.
        if plugin != self.id.plugin.as_str() && plugin.len() > 2 {
            names.push(plugin.to_owned());
        }
        if other.title.split_whitespace().count() > 1 {
            names.push(other.title.clone());
        }
        names.iter().any(|name| contains_word(&self.limits, &name.to_lowercase()))
    }

    fn found_with(&self, other: &Purpose<'_>) -> LintFinding {
        let mut shared: Vec<(&Word, &Word, f32)> = self
            .all
            .iter()
            .filter_map(|(token, (word, weight))| Some((word, &other.all.get(token)?.0, *weight)))
            .collect();
        shared.sort_by(|one, other| other.2.total_cmp(&one.2));
        let told = |(one, other, _): &(&Word, &Word, f32)| match one.written == other.written {
            true => one.written.clone(),
            false => format!("{}/{}", one.written, other.written),
        };
        let words: Vec<String> = shared.iter().take(SHARED_MAX).map(told).collect();
        let (one, other) = (self.id, other.id);
        let message = format!("{one} and {other} seem to be for the same: both say {}", words.join(", "));
        LintFinding {
            hint: format!(
                "say in when_not_to_use of {one} what {other} is for, such as \"… is asked for: use {other}\", or the \
                 other way round; or leave one of them out"
            ),
            ..finding(one.to_string(), Rule::Overlap, "/when_not_to_use", message)
        }
    }
}

/// What is done: the first verb of the name, or of the beginning of the description.
fn deeds(named: &[Word], described: &[Word]) -> u64 {
    let of_name = named.iter().map(|word| word.deeds).find(|deeds| *deeds != 0);
    let of_text = described.iter().take(2).map(|word| word.deeds).find(|deeds| *deeds != 0);
    of_name.or(of_text).unwrap_or(0)
}

type Counted<'w> = BTreeMap<&'w str, f32>;

fn plain(words: &BTreeMap<String, Word>) -> Counted<'_> {
    words.iter().map(|(token, word)| (token.as_str(), word.weight)).collect()
}

fn counted(words: &BTreeMap<String, (Word, f32)>) -> Counted<'_> {
    words.iter().map(|(token, (_, weight))| (token.as_str(), *weight)).collect()
}

/// What two texts have in common of all that they say, from 0 to 1.
fn likeness(one: &Counted<'_>, other: &Counted<'_>) -> f32 {
    let (mut shared, mut all) = (0.0, 0.0);
    for (token, weight) in one {
        let elsewhere = other.get(token);
        let weight = elsewhere.map_or(*weight, |elsewhere| weight.max(*elsewhere));
        all += weight;
        shared += if elsewhere.is_some() { weight } else { 0.0 };
    }
    all += other.iter().filter(|(token, _)| !one.contains_key(*token)).map(|(_, weight)| weight).sum::<f32>();
    if all > 0.0 { shared / all } else { 0.0 }
}
