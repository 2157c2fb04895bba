//! The name somebody probably meant: edit distance over the names there are.

/// A longer name is not compared: nobody mistypes it, and comparing costs its square.
const COMPARED_MAX_CHARS: usize = 128;

/// The candidate nearest to `name`, where one is near enough to be worth suggesting.
///
/// Case and the difference between `-`, `_` and `.` count for nothing; of equally near candidates
/// the first wins.
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    if name.chars().nth(COMPARED_MAX_CHARS).is_some() {
        return None;
    }
    let wanted = folded(name);
    let dot = name.rfind('.');
    let mut best: Option<(usize, &'c str)> = None;
    for candidate in candidates {
        if candidate.chars().nth(COMPARED_MAX_CHARS).is_some() {
            continue;
        }
        let there = folded(candidate);
        let distance = strsim::osa_distance(&wanted, &there);
        // What both begin with says nothing: of a.x and a.y, x and y are compared.
        let near_enough = match dot.filter(|dot| candidate.get(..=*dot) == name.get(..=*dot)) {
            Some(dot) => distance <= allowed(&name[dot + 1..], &candidate[dot + 1..]),
            None => distance <= allowed(&wanted, &there),
        };
        if near_enough && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// How many edits still count as a slip: a third of the longer name, and never the whole of one.
fn allowed(one: &str, other: &str) -> usize {
    let (one, other) = (one.chars().count(), other.chars().count());
    (one.max(other) / 3).max(1).min(one.min(other).saturating_sub(1))
}

fn folded(name: &str) -> String {
    name.chars()
        .map(|character| if matches!(character, '-' | '.' | ' ') { '_' } else { character })
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_a_stranger_finds_none() {
        let names = ["query_status", "query_stats", "timeout", "city", "ticket_id"];
        let table = [
            ("query_statuss", Some("query_status")),
            ("timout", Some("timeout")),
            ("Query-Status", Some("query_status")),
            ("ticket", Some("ticket_id")),
            ("ctiy", Some("city")),
            ("sunrise", None),
            ("", None),
            ("x", None),
        ];
        for (given, expected) in table {
            assert_eq!(nearest(given, names), expected, "{given:?}");
        }
    }

    #[test]
    fn the_same_plugin_makes_no_operation_nearer() {
        let names = ["kit.wipe", "kit.need", "kit.query_status"];
        assert_eq!(nearest("kit.nope", names), None);
        assert_eq!(nearest("kit.wpie", names), Some("kit.wipe"));
        assert_eq!(nearest("kti.wipe", names), Some("kit.wipe"));
        assert_eq!(nearest("kit.query-stats", names), Some("kit.query_status"));
    }

    #[test]
    fn a_very_long_name_is_not_compared() {
        let long = "q".repeat(1_000_000);
        assert_eq!(nearest(&long, ["query_status"]), None);
        assert_eq!(nearest("query", [long.as_str()]), None);
    }
}
