//! The recorded figures, and how new ones compare with them.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cases::{Case, Tolerance};
use crate::measure::Figures;
use crate::setting::Setting;

/// How to accept new figures.
const RECORD: &str = "make cost-record";

/// Fewer instructions than this in a call are noise, whatever share they are.
const INSTRUCTIONS_MIN: f64 = 150.0;

/// Figures of all cases, and what they were counted with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recorded {
    pub(crate) counted_with: Setting,
    pub(crate) cases: BTreeMap<String, Figures>,
}

/// Something that is not as it was recorded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Finding {
    /// It costs more or less than it may.
    Off { case: String, what: &'static str, recorded: f64, now: f64, tolerance: f64 },
    /// It was counted, and nothing is recorded of it.
    NotRecorded { case: String },
    /// It is recorded, and was not counted.
    NotCounted { case: String },
    /// What is to cost the same however much there is does not.
    NotFlat { few: &'static str, many: &'static str, ratio: f64, limit: f64 },
}

/// Pairs of cases of which the second has a hundredfold or more of what must not weigh.
const FLAT: &[(&str, &str)] = &[("plugins-10", "plugins-1000"), ("held-0", "held-10000")];

/// How many times the instructions of the first the second may take.
const FLAT_WITHIN: f64 = 1.2;

impl Recorded {
    /// The file in the repository.
    pub(crate) fn path() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("recorded.toml")
    }

    /// Reads what was recorded.
    ///
    /// # Errors
    /// The file is not there or cannot be understood.
    pub(crate) fn load(path: &Path) -> io::Result<Recorded> {
        let wrong = |error: &dyn fmt::Display| {
            io::Error::other(format!("{}: {error}; `{RECORD}` writes it anew", path.display()))
        };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        toml::from_str(&text).map_err(|error| wrong(&error))
    }

    /// Writes them for the next comparison.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn save(&self, path: &Path) -> io::Result<()> {
        let text = toml::to_string(self).map_err(io::Error::other)?;
        std::fs::write(
            path,
            format!("# What a call costs in each case of tests/cost. `{RECORD}` writes this file.\n\n{text}"),
        )
    }
}

/// Holds what was counted to what is recorded. Instructions are left out where another setting decides them.
pub(crate) fn compare(recorded: &Recorded, now: &Recorded, cases: &[&Case]) -> Vec<Finding> {
    let same_setting = recorded.counted_with == now.counted_with;
    let mut findings = Vec::new();
    for case in cases {
        let name = case.name.to_owned();
        match (recorded.cases.get(case.name), now.cases.get(case.name)) {
            (Some(before), Some(now)) => {
                let figures = figures(before, now, case.tolerance);
                let compared = figures.into_iter().filter(|figure| same_setting || !figure.by_setting);
                findings.extend(compared.filter_map(|figure| figure.off(&name)));
            }
            (None, Some(_)) => findings.push(Finding::NotRecorded { case: name }),
            (_, None) => findings.push(Finding::NotCounted { case: name }),
        }
    }
    findings.extend(not_flat(&now.cases));
    findings
}

/// One figure, before and now.
struct Figure {
    what: &'static str,
    /// Whether compiler and libraries decide it.
    by_setting: bool,
    recorded: f64,
    now: f64,
    tolerance: f64,
}

/// What is compared. Other threads write by time, not by call: their figures are recorded for readers alone.
fn figures(before: &Figures, now: &Figures, tolerance: Tolerance) -> [Figure; 3] {
    let syscalls = |what, recorded, now| Figure {
        what,
        by_setting: false,
        recorded,
        now,
        tolerance: tolerance.syscalls,
    };
    [
        Figure {
            what: "instructions",
            by_setting: true,
            recorded: before.instructions,
            now: now.instructions,
            tolerance: f64::max(before.instructions * tolerance.instructions, INSTRUCTIONS_MIN),
        },
        syscalls("system calls", before.syscalls, now.syscalls),
        syscalls("system calls of the plugin", before.syscalls_plugin, now.syscalls_plugin),
    ]
}

impl Figure {
    fn off(self, case: &str) -> Option<Finding> {
        let Figure { what, recorded, now, tolerance, .. } = self;
        let off = (now - recorded).abs() > tolerance;
        off.then(|| Finding::Off { case: case.to_owned(), what, recorded, now, tolerance })
    }
}

fn not_flat(cases: &BTreeMap<String, Figures>) -> impl Iterator<Item = Finding> {
    FLAT.iter().filter_map(|(few, many)| {
        let ratio = cases.get(*many)?.instructions / cases.get(*few)?.instructions;
        (ratio > FLAT_WITHIN).then_some(Finding::NotFlat { few, many, ratio, limit: FLAT_WITHIN })
    })
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Off { case, what, recorded, now, tolerance } => {
                let change = (now / recorded - 1.0) * 100.0;
                let (numbers, advice) = match now > recorded {
                    true => ("worse", "find what costs more by `plugd-cost profile`; if it is worth it"),
                    false => ("better", "so that it stays so"),
                };
                write!(
                    f,
                    "{case}: {what} of a call: recorded {recorded:.2}, now {now:.2} ({change:+.1} %), tolerance \
                     {tolerance:.2}: {numbers}; {advice}, record anew with `{RECORD}`"
                )
            }
            Finding::NotRecorded { case } => {
                write!(f, "{case}: nothing is recorded of it; record it with `{RECORD}`")
            }
            Finding::NotCounted { case } => write!(f, "{case}: it is recorded and was not counted"),
            Finding::NotFlat { few, many, ratio, limit } => write!(
                f,
                "{many}: a call takes {ratio:.2} times the instructions of {few}, expected at most {limit}: \
                 something on its way grows with what there is; `plugd-cost profile {many}` shows what"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases;

    const CASES: &[&str] = &["engine", "plugins-10", "plugins-1000"];

    fn figures(instructions: f64, syscalls: f64) -> Figures {
        Figures { instructions, instructions_aside: 0.0, syscalls, syscalls_aside: 0.0, syscalls_plugin: 2.0 }
    }

    fn recorded() -> Recorded {
        let cases = CASES.iter().map(|name| ((*name).to_owned(), figures(20_000.0, 3.0))).collect();
        Recorded { counted_with: Setting::named("rustc 1"), cases }
    }

    fn found(now: &Recorded) -> Vec<String> {
        let cases: Vec<&Case> = CASES.iter().map(|name| cases::find(name).expect("a case")).collect();
        compare(&recorded(), now, &cases).iter().map(ToString::to_string).collect()
    }

    fn with(case: &str, figures: Figures) -> Recorded {
        let mut now = recorded();
        now.cases.insert(case.to_owned(), figures);
        now
    }

    #[test]
    fn what_is_within_tolerance_is_not_mentioned() {
        assert_eq!(found(&recorded()), Vec::<String>::new());
        assert_eq!(found(&with("engine", figures(21_500.0, 3.2))), Vec::<String>::new());
    }

    #[test]
    fn what_got_worse_is_named_with_its_figures_and_what_to_do() {
        let found = found(&with("engine", figures(22_000.0, 3.0)));
        assert_eq!(
            found,
            [
                "engine: instructions of a call: recorded 20000.00, now 22000.00 (+10.0 %), tolerance 1600.00: worse; \
              find what costs more by `plugd-cost profile`; if it is worth it, record anew with `make cost-record`"
            ]
        );
    }

    #[test]
    fn what_got_better_is_to_be_recorded() {
        let found = found(&with("engine", figures(15_000.0, 2.0)));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found.iter().all(|found| found.contains("better; so that it stays so, record anew")),
            "{found:?}"
        );
    }

    #[test]
    fn what_other_threads_take_is_not_compared() {
        let now = Figures { instructions_aside: 9e6, syscalls_aside: 99.0, ..figures(20_000.0, 3.0) };
        assert_eq!(found(&with("engine", now)), Vec::<String>::new());
    }

    #[test]
    fn a_case_without_figures_on_either_side_is_found() {
        let mut now = recorded();
        now.cases.remove("engine");
        assert_eq!(found(&now), ["engine: it is recorded and was not counted"]);
        let cases = [cases::find("raw").expect("a case")];
        let found = compare(&recorded(), &with("raw", figures(1.0, 2.0)), &cases);
        assert_eq!(found, [Finding::NotRecorded { case: "raw".to_owned() }]);
    }

    #[test]
    fn another_compiler_leaves_only_system_calls_to_compare() {
        let mut now = with("engine", figures(90_000.0, 9.0));
        now.counted_with = Setting::named("rustc 2");
        let found = found(&now);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("engine: system calls of a call: recorded 3.00, now 9.00"), "{found:?}");
    }

    #[test]
    fn a_cost_that_grows_with_the_plugins_is_found_whatever_is_recorded() {
        let mut now = with("plugins-1000", figures(25_000.0, 3.0));
        now.counted_with = Setting::named("rustc 2");
        let found = found(&now);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("1.25 times the instructions of plugins-10, expected at most 1.2"),
            "{found:?}"
        );
    }

    #[test]
    fn figures_are_the_same_after_they_were_written_and_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("recorded.toml");
        recorded().save(&path).expect("written");
        assert_eq!(Recorded::load(&path).expect("read"), recorded());
    }
}
