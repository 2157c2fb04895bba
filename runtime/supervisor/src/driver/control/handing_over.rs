//! From one run of a plugin to another: the one that replaces it, and the one that was spare.

use plugd_protocol::PluginName;

use super::super::host::{RunEvent, Standing};
use super::Control;
use crate::machine::{Generation, Lifecycle};

impl Control {
    /// What a run is to its plugin, as the machine has it.
    pub(super) fn standing(&self, plugin: &PluginName, generation: Generation) -> Standing {
        let Some(view) = self.machine.view(plugin) else { return Standing::Serving };
        if view.replacing == Some(generation) {
            Standing::Candidate
        } else if view.spare.is_some_and(|spare| spare.generation == Some(generation)) {
            Standing::Spare
        } else {
            Standing::Serving
        }
    }

    /// Registers what a candidate declares once it is the plugin's run: it took over, or the run
    /// that it was to take over from has died.
    pub(super) fn promote(&mut self, plugin: &PluginName) {
        let Some(view) = self.machine.view(plugin) else { return };
        let Some(entry) = self.entries.get(plugin) else { return };
        let Some(run) = entry.runs.get(&view.generation) else { return };
        if let Some(manifest) = run.door.promote()
            && let Err(reason) = self.host.described(plugin, view.generation, &manifest, Standing::Serving)
        {
            tracing::error!(%plugin, reason, "a manifest that was accepted is refused");
        }
    }

    /// Hands the calls over to a run that is ready to take them.
    pub(super) fn switch(&mut self, plugin: &PluginName, from: Generation, to: Generation) {
        self.promote(plugin);
        tracing::info!(%plugin, from = from.0, generation = to.0, "replaced");
        self.publish_door(plugin);
        self.host.event(plugin, to, RunEvent::Replaced { from });
    }

    /// Hands the calls over to the spare of a run that has failed.
    pub(super) fn take_over(&mut self, plugin: &PluginName, from: Generation, to: Generation) {
        // What it declares is registered already: that of the run before is the same.
        if let Some(run) = self.entries.get(plugin).and_then(|entry| entry.runs.get(&to)) {
            let _the_same = run.door.promote();
        }
        self.publish_door(plugin);
        tracing::info!(%plugin, from = from.0, generation = to.0, "its spare took over");
        self.host.event(plugin, to, RunEvent::TookOver { from });
    }

    /// Tells that a spare came to nothing.
    pub(super) fn spare_failed(&self, plugin: &PluginName, generation: Generation, reason: String) {
        tracing::warn!(%plugin, generation = generation.0, reason, "its spare failed");
        self.host.event(plugin, generation, RunEvent::SpareFailed { reason });
    }

    /// Tells once of each change that was tried and is not in use.
    pub(super) fn tell_refusals(&mut self) {
        for name in self.machine.looked_at() {
            let Some(entry) = self.entries.get_mut(name) else { continue };
            let refusal = self.machine.plugin(name).and_then(Lifecycle::refusal);
            let was_told = std::mem::replace(&mut entry.refused, refusal.is_some());
            if let Some(reason) = refusal.filter(|_| !was_told)
                && let Some(view) = self.machine.view(name)
            {
                tracing::warn!(plugin = %name, generation = view.generation.0, reason, "goes on as it was");
                self.host.event(name, view.generation, RunEvent::Refused { reason: reason.to_owned() });
            }
        }
    }
}
