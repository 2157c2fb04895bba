//! Who requires whom: levels, order, and what makes an order impossible.
//!
//! Nothing here recurses: chains and cycles may be as long as the configuration.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use petgraph::Direction;
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{EdgeFiltered, EdgeRef};
use plugd_protocol::PluginName;
use plugd_protocol::control::GraphEdge;
use plugd_protocol::manifest::Requirement;

use super::{Declared, Spec};

/// A path longer than this is printed without its middle.
const PATH_SHOWN_MAX: usize = 50;

/// The plugins and what they require, with the order that follows.
#[derive(Debug, Default)]
pub struct Graph {
    /// An edge leads from a plugin to one it requires.
    graph: DiGraph<Node, Link>,
    index: BTreeMap<PluginName, NodeIndex>,
    levels: Vec<Vec<PluginName>>,
    ranks: BTreeMap<PluginName, usize>,
    cycles: Vec<Arc<[PluginName]>>,
    problems: BTreeMap<PluginName, Vec<Problem>>,
}

/// What the graph is made from, for one plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Larger starts earlier within a level.
    pub priority: i32,
    /// The plugins it requires.
    pub requires: BTreeMap<PluginName, Requirement>,
}

/// Why a plugin cannot start as things are configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// It requires a plugin that is not configured.
    Missing {
        /// The name it requires.
        name: PluginName,
        /// A configured name close to that.
        near: Option<PluginName>,
    },
    /// It requires itself.
    SelfDependency,
    /// It requires itself through others: the way round, without the first one repeated.
    Cycle(Arc<[PluginName]>),
    /// It requires another version of a plugin than there is.
    VersionMismatch {
        /// The plugin it requires.
        name: PluginName,
        /// The versions that would do.
        wanted: semver::VersionReq,
        /// The version there is; none where it does not compare.
        found: Option<semver::Version>,
    },
}

/// One requirement, seen from the plugin that has it.
#[derive(Debug, Clone, Copy)]
pub struct Edge<'a> {
    /// Who requires.
    pub from: &'a PluginName,
    /// Whom; it may be missing.
    pub to: &'a PluginName,
    /// What will do, and whether it can do without.
    pub requirement: &'a Requirement,
    /// Whether there is no such plugin.
    pub missing: bool,
    /// Whether it orders the two: not where one is missing or it would close a cycle.
    pub orders: bool,
}

impl Needs {
    /// What a plugin requires: the configuration wins over the manifest, name by name.
    pub(super) fn of(spec: &Spec, declared: Option<&Declared>) -> Needs {
        let mut requires = declared.map(|declared| declared.requires.clone()).unwrap_or_default();
        requires.extend(spec.requires.clone());
        let priority = spec.priority.or(declared.and_then(|declared| declared.priority)).unwrap_or(0);
        Needs { priority, requires }
    }
}

#[derive(Debug)]
struct Node {
    name: PluginName,
    needs: Needs,
}

#[derive(Debug)]
struct Link {
    optional: bool,
    orders: bool,
}

impl Graph {
    /// Builds the graph and everything that follows from it.
    pub fn new(plugins: BTreeMap<PluginName, Needs>) -> Graph {
        let mut graph = Graph::default();
        for (name, needs) in plugins {
            let node = graph.graph.add_node(Node { name: name.clone(), needs });
            graph.index.insert(name, node);
        }
        graph.link();
        graph.find_cycles();
        graph.find_order();
        graph
    }

    /// Everybody, by level; 0 requires nothing. Within one: larger priority first, then by name.
    pub fn levels(&self) -> &[Vec<PluginName>] {
        &self.levels
    }

    /// The order in which plugins start.
    pub fn start_order(&self) -> impl DoubleEndedIterator<Item = &PluginName> {
        self.levels.iter().flatten()
    }

    /// The order in which plugins stop: that of starting, reversed.
    pub fn stop_order(&self) -> impl Iterator<Item = &PluginName> {
        self.start_order().rev()
    }

    /// The level a plugin starts in; none for one that is unknown or cannot start by itself.
    pub fn level(&self, name: &PluginName) -> Option<u32> {
        let hopeless = self.problems(name).iter().any(|problem| problem.disables());
        let level = self.levels.iter().position(|level| level.contains(name)).filter(|_| !hopeless)?;
        u32::try_from(level).ok()
    }

    /// Where a plugin stands in the order of starting; last if it is unknown.
    pub(super) fn rank(&self, name: &PluginName) -> usize {
        self.ranks.get(name).copied().unwrap_or(usize::MAX)
    }

    /// What is wrong with a plugin's requirements.
    pub fn problems(&self, name: &PluginName) -> &[Problem] {
        self.problems.get(name).map_or(&[], Vec::as_slice)
    }

    /// Each cycle found, as the way round it.
    pub fn cycles(&self) -> &[Arc<[PluginName]>] {
        &self.cycles
    }

    /// Every requirement of everybody.
    pub fn edges(&self) -> impl Iterator<Item = Edge<'_>> {
        self.graph.node_indices().flat_map(|node| self.edges_from(node))
    }

    /// What a plugin requires, by name.
    pub fn requirements(&self, name: &PluginName) -> impl Iterator<Item = Edge<'_>> {
        self.index.get(name).into_iter().flat_map(|&node| self.edges_from(node))
    }

    /// The plugins that require this one themselves, by name.
    pub fn dependents(&self, name: &PluginName) -> Vec<&PluginName> {
        let nodes = self.index.get(name).into_iter();
        let edges = nodes.flat_map(|&node| self.graph.edges_directed(node, Direction::Incoming));
        let names: BTreeSet<&PluginName> = edges.map(|edge| &self.graph[edge.source()].name).collect();
        names.into_iter().collect()
    }

    /// The plugins that must be down before this one is asked to stop.
    pub(super) fn stop_first(&self, name: &PluginName) -> impl Iterator<Item = &PluginName> {
        let nodes = self.index.get(name).into_iter();
        let edges = nodes.flat_map(|&node| self.graph.edges_directed(node, Direction::Incoming));
        edges.filter(|edge| edge.weight().orders).map(|edge| &self.graph[edge.source()].name)
    }

    fn edges_from(&self, node: NodeIndex) -> impl Iterator<Item = Edge<'_>> {
        let Node { name: from, needs } = &self.graph[node];
        needs.requires.iter().map(move |(to, requirement)| {
            let target = self.index.get(to);
            let link = target.and_then(|&target| self.graph.find_edge(node, target));
            let orders = link.is_some_and(|link| self.graph[link].orders);
            Edge { from, to, requirement, missing: target.is_none(), orders }
        })
    }

    /// Adds the edges between those that exist, and notes what is missing or requires itself.
    fn link(&mut self) {
        for node in self.graph.node_indices() {
            let Node { name, needs } = &self.graph[node];
            let mut links = Vec::new();
            let mut problems = Vec::new();
            for (required, requirement) in &needs.requires {
                match self.index.get(required) {
                    Some(&target) if target == node => {
                        if !requirement.optional {
                            problems.push(Problem::SelfDependency);
                        }
                    }
                    Some(&target) => links.push((target, requirement.optional)),
                    None if requirement.optional => {}
                    None => {
                        let near = nearest(required, self.index.keys().filter(|&other| other != name));
                        problems.push(Problem::Missing { name: required.clone(), near });
                    }
                }
            }
            if !problems.is_empty() {
                self.problems.insert(name.clone(), problems);
            }
            for (target, optional) in links {
                self.graph.add_edge(node, target, Link { optional, orders: true });
            }
        }
    }

    /// Finds the cycles of hard requirements, and lets no edge within any cycle order anything.
    ///
    /// A soft requirement forms no cycle: one that would close one is dropped from the order.
    fn find_cycles(&mut self) {
        let hard =
            components(&kosaraju_scc(&EdgeFiltered::from_fn(&self.graph, |edge| !edge.weight().optional)));
        let all = components(&kosaraju_scc(&self.graph));
        for edge in self.graph.edge_indices() {
            let (from, to) = self.graph.edge_endpoints(edge).expect("an index of this graph's own");
            let link = &mut self.graph[edge];
            let component = if link.optional { &all } else { &hard };
            link.orders = component[&from] != component[&to];
        }
        let mut members: BTreeMap<usize, usize> = BTreeMap::new();
        for &component in hard.values() {
            *members.entry(component).or_default() += 1;
        }
        let mut on_known_cycle: BTreeSet<NodeIndex> = BTreeSet::new();
        // The index is in the order of names, so each cycle is named from its smallest one.
        for &node in self.index.values() {
            if members[&hard[&node]] < 2 || on_known_cycle.contains(&node) {
                continue;
            }
            let way = self.way_round(node, &hard);
            let path: Arc<[PluginName]> = way.iter().map(|&step| self.graph[step].name.clone()).collect();
            for step in way {
                if on_known_cycle.insert(step) {
                    let problems = self.problems.entry(self.graph[step].name.clone()).or_default();
                    problems.push(Problem::Cycle(Arc::clone(&path)));
                }
            }
            self.cycles.push(path);
        }
    }

    /// The shortest way from a member of a cycle back to itself, breadth first.
    fn way_round(&self, start: NodeIndex, component: &BTreeMap<NodeIndex, usize>) -> Vec<NodeIndex> {
        let mut came_from: BTreeMap<NodeIndex, NodeIndex> = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            let hard = self.graph.edges(node).filter(|edge| !edge.weight().optional);
            for next in hard.map(|edge| edge.target()) {
                if next == start {
                    let mut way = vec![node];
                    while let Some(&before) = came_from.get(way.last().expect("never empty")) {
                        way.push(before);
                    }
                    way.reverse();
                    return way;
                }
                if component[&next] == component[&start] && !came_from.contains_key(&next) {
                    came_from.insert(next, node);
                    queue.push_back(next);
                }
            }
        }
        vec![start]
    }

    /// Levels by Kahn's method along the edges that order, which form no cycle.
    fn find_order(&mut self) {
        let mut open: BTreeMap<NodeIndex, usize> = BTreeMap::new();
        let mut level: BTreeMap<NodeIndex, usize> = BTreeMap::new();
        let mut queue = VecDeque::new();
        for node in self.graph.node_indices() {
            let count = self.graph.edges(node).filter(|edge| edge.weight().orders).count();
            open.insert(node, count);
            if count == 0 {
                queue.push_back(node);
                level.insert(node, 0);
            }
        }
        while let Some(node) = queue.pop_front() {
            let above = level[&node] + 1;
            let edges = self.graph.edges_directed(node, Direction::Incoming);
            for dependent in edges.filter(|edge| edge.weight().orders).map(|edge| edge.source()) {
                let reached = level.entry(dependent).or_default();
                *reached = above.max(*reached);
                let left = open.get_mut(&dependent).expect("every node has a count");
                *left -= 1;
                if *left == 0 {
                    queue.push_back(dependent);
                }
            }
        }
        let mut order: Vec<NodeIndex> = self.graph.node_indices().collect();
        order.sort_by_key(|&node| {
            let Node { name, needs } = &self.graph[node];
            (level[&node], Reverse(needs.priority), name.clone())
        });
        for (rank, node) in order.into_iter().enumerate() {
            let name = &self.graph[node].name;
            self.ranks.insert(name.clone(), rank);
            if self.levels.len() <= level[&node] {
                self.levels.push(Vec::new());
            }
            self.levels[level[&node]].push(name.clone());
        }
    }
}

impl Problem {
    /// Whether the plugin itself is at fault, rather than waiting for one that may be added.
    pub fn disables(&self) -> bool {
        match self {
            Problem::Missing { .. } => false,
            Problem::SelfDependency | Problem::Cycle(_) | Problem::VersionMismatch { .. } => true,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Missing { name, near } => {
                write!(f, "requires {name}, which is not configured")?;
                near.iter().try_for_each(|near| write!(f, " (did you mean {near}?)"))
            }
            Problem::SelfDependency => write!(f, "depends on itself"),
            Problem::Cycle(path) => {
                write!(f, "is part of a dependency cycle: ")?;
                let hidden = path.len().saturating_sub(PATH_SHOWN_MAX);
                let head = if hidden == 0 { path.len() } else { PATH_SHOWN_MAX / 2 };
                path[..head].iter().try_for_each(|name| write!(f, "{name} -> "))?;
                if hidden > 0 {
                    write!(f, "({hidden} more) -> ")?;
                }
                path[head + hidden..].iter().try_for_each(|name| write!(f, "{name} -> "))?;
                path.first().map_or(Ok(()), |first| write!(f, "{first}"))
            }
            Problem::VersionMismatch { name, wanted, found: Some(found) } => {
                write!(f, "requires {name} {wanted}, but its version is {found}")
            }
            Problem::VersionMismatch { name, wanted, found: None } => {
                write!(f, "requires {name} {wanted}, but its version is not a semantic version")
            }
        }
    }
}

impl From<Edge<'_>> for GraphEdge {
    fn from(edge: Edge<'_>) -> GraphEdge {
        GraphEdge {
            from: edge.from.clone(),
            to: edge.to.clone(),
            version: edge.requirement.version.to_string(),
            optional: edge.requirement.optional,
            missing: edge.missing,
            on_loss: edge.requirement.on_loss,
        }
    }
}

/// Which component each node is in, by number.
fn components(found: &[Vec<NodeIndex>]) -> BTreeMap<NodeIndex, usize> {
    let numbered = found.iter().enumerate();
    numbered.flat_map(|(number, nodes)| nodes.iter().map(move |&node| (node, number))).collect()
}

/// The name closest to what was written, if it is close: one slip in three letters, at most two.
fn nearest<'a>(written: &PluginName, names: impl Iterator<Item = &'a PluginName>) -> Option<PluginName> {
    let written = written.as_str();
    let limit = (written.len() / 3).clamp(1, 2);
    names
        .filter(|name| name.as_str().len().abs_diff(written.len()) <= limit)
        .map(|name| (strsim::osa_distance(written, name.as_str()), name))
        .filter(|&(distance, _)| distance <= limit)
        .min()
        .map(|(_, name)| name.clone())
}
