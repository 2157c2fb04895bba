//! What plugins mean to each other: who waits for whom, who needs whom, and who is lost with whom.

use std::time::Instant;

use plugd_protocol::PluginName;
use plugd_protocol::manifest::{OnLoss, Requirement};

use super::Action;
use super::graph::{Edge, Graph, Problem};
use super::lifecycle::{Block, Gates, Lifecycle};
use super::supervisor::{Leaving, Supervisor};
use super::view::Face;

impl Supervisor {
    /// What is wrong with a plugin's requirements, versions included.
    pub fn problems(&self, name: &PluginName) -> Vec<Problem> {
        let structural = self.graph.problems(name).iter().cloned();
        structural
            .chain(self.graph.requirements(name).filter_map(|edge| self.mismatch(edge.to, edge.requirement)))
            .collect()
    }

    /// Lets a parked candidate go on, wait or fail, by what its own manifest says.
    pub(super) fn settle_candidate(&mut self, now: Instant, name: &PluginName, out: &mut Vec<Action>) {
        let Some(plugin) = self.plugins.get(name).filter(|plugin| plugin.candidate_is_parked()) else {
            return;
        };
        let Some(needs) = plugin.candidate_needs() else { return };
        let required: Vec<PluginName> =
            needs.requires.iter().filter(|(_, it)| !it.optional).map(|(name, _)| name.clone()).collect();
        let gates = if needs.requires == plugin.needs().requires {
            self.gates(&self.graph, name)
        } else {
            let mut all = self.needs();
            all.insert(name.clone(), needs);
            self.gates(&Graph::new(all), name)
        };
        let plugin = self.plugins.get_mut(name).expect("looked up above");
        plugin.settle_candidate(now, gates, out);
        if plugin.candidate_is_parked() {
            self.want_all(required, false);
        }
    }

    /// Tells those who require a plugin that it was ready and is no more.
    pub(super) fn lose(&mut self, now: Instant, name: &PluginName, out: &mut Vec<Action>) {
        if self.leaving != Leaving::No {
            return;
        }
        for (dependent, on_loss) in self.losers(name) {
            self.update(&dependent, |plugin| plugin.lose(now, on_loss, out));
        }
    }

    /// Who requires a plugin and does not stay up without it, and what becomes of them.
    fn losers(&self, name: &PluginName) -> Vec<(PluginName, OnLoss)> {
        // The graph knows no dependents of what is not configured any more.
        let dependents: Vec<&PluginName> = match self.plugins.get(name) {
            Some(plugin) if plugin.removed => self.plugins.keys().collect(),
            Some(_) | None => self.graph.dependents(name),
        };
        let edges = dependents.into_iter().flat_map(|dependent| self.graph.requirements(dependent));
        edges
            .filter(|edge| edge.to == name && !edge.requirement.on_loss.is_stay())
            .map(|edge| (edge.from.clone(), edge.requirement.on_loss))
            .collect()
    }

    /// What those around a plugin allow it, going by a graph in which its needs may be others.
    pub(super) fn gates(&self, graph: &Graph, name: &PluginName) -> Gates {
        let mut gates = Gates { leaving: self.leaving != Leaving::No, ..Gates::default() };
        if gates.leaving {
            let mut first = graph.stop_first(name);
            gates.last = !first.any(|other| self.plugins.get(other).is_some_and(Lifecycle::is_live));
        }
        let own_fault = graph.problems(name).iter().find(|problem| problem.disables()).cloned();
        let mut mismatches = graph.requirements(name);
        let problem =
            own_fault.or_else(|| mismatches.find_map(|edge| self.mismatch(edge.to, edge.requirement)));
        if let Some(problem) = problem {
            gates.problem = Some(problem.to_string().into());
            return gates;
        }
        for edge in graph.requirements(name) {
            let face = self.plugins.get(edge.to).filter(|_| !edge.missing).map(|plugin| &plugin.face);
            match (face, edge.requirement.optional) {
                (None, true) => {}
                (None, false) => block(&mut gates, edge.to, edge.to, &not_configured(graph, name, edge.to)),
                (Some(Face::Down { root, cause }), false) => block(&mut gates, edge.to, root, cause),
                (Some(Face::Coming { starting: true }), true) if edge.orders => {
                    gates.waits.push(edge.to.clone())
                }
                (Some(Face::Asleep | Face::Coming { .. }), false) => gates.waits.push(edge.to.clone()),
                (Some(Face::Ready), _) => {}
                (Some(Face::Asleep | Face::Coming { .. } | Face::Down { .. }), true) => {}
            }
        }
        gates
    }

    /// Whether a plugin is known to have a version that will not do.
    fn mismatch(&self, required: &PluginName, requirement: &Requirement) -> Option<Problem> {
        let plugin = self.plugins.get(required).filter(|plugin| !plugin.removed)?;
        let declared = plugin.declared.as_ref()?;
        // Any version will do, be it a pre-release or none that compares.
        if requirement.optional || requirement.version.comparators.is_empty() {
            return None;
        }
        let found = declared.version.clone();
        let fits = found.as_ref().is_some_and(|version| requirement.version.matches(version));
        (!fits).then(|| Problem::VersionMismatch {
            name: required.clone(),
            wanted: requirement.version.clone(),
            found,
        })
    }

    /// Makes what a plugin requires wanted too; of a blocked one, only what blocks it.
    pub(super) fn pull(&mut self, name: &PluginName) {
        let Some(plugin) = self.plugins.get(name) else { return };
        let by_call = plugin.by_call;
        let blocking = plugin.gates.block.as_ref().map(|block| block.on.clone());
        let hard = self.graph.requirements(name).filter(|edge| !edge.requirement.optional && !edge.missing);
        let concerned = |name: &&PluginName| blocking.as_ref().is_none_or(|it| it.contains(*name));
        let required: Vec<PluginName> = hard.map(|edge| edge.to).filter(concerned).cloned().collect();
        self.want_all(required, by_call);
    }

    fn want_all(&mut self, names: Vec<PluginName>, by_call: bool) {
        for name in names {
            if self.plugins.get_mut(&name).is_some_and(|plugin| !plugin.removed && plugin.want(by_call)) {
                self.touch(&name);
            }
        }
    }

    /// Whether a plugin is needed even where no call is: by a dependent that is on its way up, or
    /// by one that runs and would not stay up without it.
    pub(super) fn is_needed(&self, name: &PluginName) -> bool {
        let by_candidate = self.replacing.iter().any(|other| {
            let needs = self.plugins.get(other).and_then(Lifecycle::candidate_needs);
            needs.and_then(|needs| needs.requires.get(name).map(|it| !it.optional)).unwrap_or(false)
        });
        by_candidate
            || self.graph.dependents(name).into_iter().any(|dependent| {
                let Some(plugin) = self.plugins.get(dependent) else { return false };
                let mut edges = self.graph.requirements(dependent).filter(|edge| edge.to == name);
                edges.any(|Edge { requirement, .. }| {
                    let pulls = !requirement.optional && plugin.pulls();
                    pulls || (!requirement.on_loss.is_stay() && plugin.is_ready())
                })
            })
    }
}

/// Notes that a requirement is down; the first one found is the one that is named.
fn block(gates: &mut Gates, required: &PluginName, root: &PluginName, cause: &str) {
    let first =
        || Block { direct: required.clone(), root: root.clone(), cause: cause.into(), on: Vec::new() };
    gates.block.get_or_insert_with(first).on.push(required.clone());
}

/// How a missing plugin is, as a cause of being blocked.
fn not_configured(graph: &Graph, name: &PluginName, missing: &PluginName) -> String {
    let near = graph.problems(name).iter().find_map(|problem| match problem {
        Problem::Missing { name, near } if name == missing => near.as_ref(),
        Problem::Missing { .. }
        | Problem::SelfDependency
        | Problem::Cycle(_)
        | Problem::VersionMismatch { .. } => None,
    });
    let hint = near.map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
    format!("which is not configured{hint}")
}
