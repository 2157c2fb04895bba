//! The layers of a call as tables: what each adds, and where its instructions are.

use std::collections::BTreeMap;
use std::io;

use crate::callgrind::{Function, by_all, by_own};
use crate::cases::{CASES, Case};
use crate::measure::{Counted, count_all};

/// Cases of which it is told where their instructions are.
const LOOKED_INTO: &[&str] = &["engine", "engine-recorded", "engine-x64", "engine-x64-recorded"];

/// The stages of a call, and the functions that they begin with.
const STAGES: &[(&str, &[&str])] = &[
    ("all on the caller's side", &["::Engine>::call::{{closure}}"]),
    ("the trail's beginning", &["::Trail::begin"]),
    ("resolve", &["::Engine>::resolve::", "::registry::Snapshot::operation"]),
    ("contract: read and check the arguments", &["::Contract>::prepare"]),
    ("admit: a lane of the plugin", &["::plugins::Plugins::admit::"]),
    ("all on the run's side", &["::driver::run::run::"]),
    ("send: the line and the table of calls", &["::run::Run::deliver_all"]),
    ("read the answer and hand it back", &["::run::Run::read_stdout"]),
    ("shape: the summary", &["::summary::made_of"]),
    ("record: the row", &["::outcome::record::note::", "::outcome::record::row"]),
    ("events: begun and ended", &["::Trail::emit"]),
    ("close: shape, record and events together", &["::Trail::close::"]),
];

/// Counts every case and prints the tables.
pub(crate) fn print() -> io::Result<()> {
    let cases: Vec<&Case> = CASES.iter().collect();
    let counted = count_all(&cases)?;
    print_layers(&cases, &counted);
    let looked_into: Vec<(&Case, &Counted)> =
        cases.into_iter().zip(&counted).filter(|(case, _)| LOOKED_INTO.contains(&case.name)).collect();
    print_stages(&looked_into)?;
    print_crates(&looked_into)
}

fn print_layers(cases: &[&Case], counted: &[Counted]) {
    println!("| case | system calls | of other threads | of the plugin | instructions | of other threads |");
    println!("|---|---|---|---|---|---|");
    for (case, counted) in cases.iter().zip(counted) {
        let figures = counted.figures;
        let mut by_name = counted.by_name.clone();
        by_name.sort_by(|one, other| other.1.total_cmp(&one.1));
        let often = by_name.iter().filter(|(_, count)| *count >= 0.05 && case.calls > 1);
        let names: Vec<String> = often.map(|(name, count)| format!("{name} {count:.2}")).collect();
        let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        println!(
            "| `{}` | {:.2}{names} | {:.2} | {:.2} | {:.0} | {:.0} |",
            case.name,
            figures.syscalls,
            figures.syscalls_aside,
            figures.syscalls_plugin,
            figures.instructions,
            figures.instructions_aside
        );
    }
}

/// A table with a column for each case.
fn print_table(
    what: &str,
    cases: &[(&Case, &Counted)],
    rows: impl Iterator<Item = (String, Vec<Option<f64>>)>,
) {
    let names: Vec<String> = cases.iter().map(|(case, _)| format!("`{}`", case.name)).collect();
    println!("\n| {what} | {} |", names.join(" | "));
    println!("|---|{}", "---|".repeat(names.len()));
    for (row, figures) in rows {
        let figures: Vec<String> = figures
            .iter()
            .map(|figure| figure.map_or_else(String::new, |figure| format!("{figure:.0}")))
            .collect();
        println!("| {row} | {} |", figures.join(" | "));
    }
}

fn print_stages(cases: &[(&Case, &Counted)]) -> io::Result<()> {
    let mut functions = Vec::new();
    for (case, counted) in cases {
        functions.push((by_all(&counted.profile)?, case.calls as f64));
    }
    let rows = STAGES.iter().map(|(stage, names)| {
        let costs = functions
            .iter()
            .map(|(functions, calls)| stage_of(functions, names).map(|all| all as f64 / calls));
        ((*stage).to_owned(), costs.collect())
    });
    print_table("stage, with what it calls", cases, rows);
    Ok(())
}

/// What the functions of a stage take; none where the compiler has put all of them into their callers.
fn stage_of(functions: &[Function], names: &[&str]) -> Option<u64> {
    let of = |name: &&str| functions.iter().find(|function| function.name.contains(*name));
    let found: Vec<u64> = names.iter().filter_map(of).map(|function| function.instructions).collect();
    (!found.is_empty()).then(|| found.iter().sum())
}

fn print_crates(cases: &[(&Case, &Counted)]) -> io::Result<()> {
    let mut all = BTreeMap::<String, Vec<Option<f64>>>::new();
    for (column, (case, counted)) in cases.iter().enumerate() {
        for function in by_own(&counted.profile)? {
            let row = all.entry(home_of(&function)).or_insert_with(|| vec![None; cases.len()]);
            *row[column].get_or_insert(0.0) += function.instructions as f64 / case.calls as f64;
        }
    }
    let most = |row: &[Option<f64>]| row.iter().flatten().fold(0.0, |most: f64, figure| most.max(*figure));
    let mut rows: Vec<_> = all.into_iter().filter(|(_, row)| most(row) >= 50.0).collect();
    rows.sort_by(|(_, one), (_, other)| most(other).total_cmp(&most(one)));
    print_table("code", cases, rows.into_iter());
    Ok(())
}

/// The crate or the library that a function's code comes from.
fn home_of(function: &Function) -> String {
    let file = function.file.as_str();
    let after = |mark: &str| file.split_once(mark).map(|(_, rest)| rest);
    let first = |path: &str| path.split('/').next().unwrap_or(path).to_owned();
    if let Some((_, registry)) = after("/registry/src/").and_then(|rest| rest.split_once('/')) {
        let package = first(registry);
        return package.rsplit_once('-').map_or(package.clone(), |(name, _version)| name.to_owned());
    }
    if let Some(rest) = after("/library/") {
        return first(rest);
    }
    if let Some(rest) = after("runtime/") {
        return format!("plugd {}", first(rest));
    }
    match file {
        _ if file.contains("protocol/src/") => "plugd protocol".to_owned(),
        _ if file.contains("tests/") => "the caller".to_owned(),
        _ if file.contains("malloc") => "libc malloc".to_owned(),
        _ if file.ends_with(".S") || file.contains("string/") || function.name.starts_with("__mem") => {
            "libc memory".to_owned()
        }
        _ => "libc and others".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(file: &str, name: &str, instructions: u64) -> Function {
        Function { file: file.to_owned(), name: name.to_owned(), instructions }
    }

    #[test]
    fn code_is_known_by_where_its_file_lies() {
        let homes = [
            (
                "/home/somebody/.cargo/registry/src/registry-1949cf8c6b5b557f/tokio-1.54.1/src/task.rs",
                "tokio",
            ),
            (
                "/home/somebody/.cargo/registry/src/registry-1949cf8c6b5b557f/serde_json-1.0.1/src/de.rs",
                "serde_json",
            ),
            ("/rustc/0123456789abcdef/library/core/src/ptr/mod.rs", "core"),
            ("runtime/engine/src/call/mod.rs", "plugd engine"),
            ("/a/plugd/protocol/src/frame.rs", "plugd protocol"),
            ("./malloc/./malloc/malloc.c", "libc malloc"),
            ("./string/../sysdeps/x86_64/multiarch/memmove-vec-unaligned-erms.S", "libc memory"),
            ("???", "libc and others"),
        ];
        for (file, home) in homes {
            assert_eq!(home_of(&function(file, "f", 1)), home, "{file}");
        }
    }

    #[test]
    fn a_stage_is_the_sum_of_its_functions_and_nothing_where_there_are_none() {
        let functions = [function("a", "x::admit::{{closure}}", 7), function("a", "y::run", 5)];
        assert_eq!(stage_of(&functions, &["::admit::", "::run"]), Some(12));
        assert_eq!(stage_of(&functions, &["::admit::", "::other"]), Some(7));
        assert_eq!(stage_of(&functions, &["::other"]), None);
    }
}
