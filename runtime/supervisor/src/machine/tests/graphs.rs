//! The graph by itself: levels, order, cycles, and sizes that must not overflow anything.

use std::collections::BTreeMap;
use std::time::Instant;

use super::super::{Action, Event, Generation, Graph, Needs, Problem, Revision, Supervisor};
use super::name;
use super::script::{plain_spec, requirements};

fn graph(text: &str) -> Graph {
    let one = |line: &str| {
        let mut words = line.split_whitespace();
        let plugin = name(words.next().unwrap());
        let mut needs = Needs::default();
        for word in words {
            match word.parse() {
                Ok(priority) => needs.priority = priority,
                Err(_) => needs.requires = requirements(word),
            }
        }
        (plugin, needs)
    };
    Graph::new(text.split(';').map(one).collect())
}

fn order(graph: &Graph) -> String {
    let levels = graph
        .levels()
        .iter()
        .map(|level| level.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" "));
    levels.collect::<Vec<_>>().join(" | ")
}

fn problems(graph: &Graph, plugin: &str) -> String {
    graph.problems(&name(plugin)).iter().map(Problem::to_string).collect::<Vec<_>>().join("; ")
}

#[test]
fn order_is_by_level_then_priority_then_name() {
    let graph = graph("z; y 5; m z; a z,y; b a,z");
    assert_eq!(order(&graph), "y z | a m | b");
    let stop: Vec<&str> = graph.stop_order().map(|name| name.as_str()).collect();
    assert_eq!(stop, ["b", "m", "a", "z", "y"]);
    assert_eq!(
        graph.dependents(&name("z")).iter().map(|name| name.as_str()).collect::<Vec<_>>(),
        ["a", "b", "m"]
    );
    assert_eq!((graph.level(&name("b")), graph.level(&name("nobody"))), (Some(2), None));
}

#[test]
fn soft_requirements_order_where_they_close_no_cycle() {
    assert_eq!(order(&graph("a b?; b")), "b | a");
    assert_eq!(order(&graph("a b?; b a")), "a | b");
    assert_eq!(order(&graph("a b?; b a?")), "a b");
    assert_eq!(order(&graph("a a?,gone?")), "a");
    assert_eq!(problems(&graph("a a?,gone?"), "a"), "");
}

#[test]
fn each_problem_is_named_for_what_it_is() {
    let graph = graph("a b; b c; c a; d c; s s; m storge; storage; x a,y; y x");
    assert_eq!(problems(&graph, "b"), "is part of a dependency cycle: a -> b -> c -> a");
    assert_eq!(problems(&graph, "y"), "is part of a dependency cycle: x -> y -> x");
    assert_eq!(problems(&graph, "d"), "");
    assert_eq!(problems(&graph, "s"), "depends on itself");
    assert_eq!(problems(&graph, "m"), "requires storge, which is not configured (did you mean storage?)");
    assert_eq!(graph.cycles().len(), 2);
    assert_eq!(graph.level(&name("a")), None);
    assert_eq!(graph.edges().filter(|edge| edge.missing).count(), 1);
}

#[test]
fn a_member_of_two_cycles_is_named_with_one_that_it_is_on() {
    let graph = graph("a b; b a,c; c b");
    assert_eq!(problems(&graph, "a"), "is part of a dependency cycle: a -> b -> a");
    assert_eq!(problems(&graph, "c"), "is part of a dependency cycle: c -> b -> c");
}

/// A chain of this many plugins; with `closed`, the last requires the first.
fn chain(count: usize, closed: bool) -> BTreeMap<plugd_protocol::PluginName, Needs> {
    let plugin = |number: usize| format!("p{number:05}");
    let one = |number: usize| {
        let next = if number + 1 < count { plugin(number + 1) } else { plugin(0) };
        let requires = if number + 1 < count || closed { requirements(&next) } else { BTreeMap::new() };
        (name(&plugin(number)), Needs { priority: 0, requires })
    };
    (0..count).map(one).collect()
}

#[test]
fn chains_and_cycles_of_ten_thousand_do_not_overflow() {
    let graph = Graph::new(chain(10_000, false));
    assert_eq!(graph.levels().len(), 10_000);
    let ring = Graph::new(chain(10_000, true));
    assert_eq!(ring.cycles()[0].len(), 10_000);
    let text = problems(&ring, "p00007");
    assert!(text.contains("p00024 -> (9950 more) -> p09975") && text.ends_with("p09999 -> p00000"), "{text}");
}

#[test]
fn a_chain_of_ten_thousand_is_blocked_and_started_without_recursion() {
    let now = Instant::now();
    let spec = |(plugin, needs): (plugd_protocol::PluginName, Needs)| {
        let mut spec = plain_spec(plugin.as_str());
        spec.requires = needs.requires;
        spec
    };
    let mut machine = Supervisor::new(1);
    machine.step(now, Event::Configured(chain(10_000, false).into_iter().map(spec).collect()));
    let actions = machine.step(now, Event::Wanted(name("p00000")));
    let spawned = actions.iter().filter(|action| matches!(action, Action::Spawn(..))).count();
    assert_eq!(spawned, 8);
    assert!(actions.contains(&Action::Spawn(name("p09999"), Generation(1), Revision(0))));
    machine.step(now, Event::Stop(name("p09999")));
    let view = machine.view(&name("p00000")).unwrap();
    let reason = "requires p00001, which is blocked by p09999, which is stopped";
    assert_eq!(view.reason.as_deref(), Some(reason));
}
