//! Operations that seem to be for the same: whoever runs plugd is warned when they come to stand together.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use plugd_contract::lint::{self, OVERLAPS_MAX, Overlap};
use plugd_protocol::OperationId;
use plugd_protocol::control::Event;
use tokio::sync::watch;

use crate::config::Config;
use crate::engine::{Engine, Inner, Shared};
use crate::events::happening;
use crate::registry::Snapshot;

/// So long nothing is to be registered before it is looked: at a start, hundreds are within seconds.
const STILL_FOR: Duration = Duration::from_secs(1);

/// It is looked even so after this long: some plugin may declare something else all the time.
const LOOKED_AFTER: Duration = Duration::from_secs(10);

/// More pairs at once are only counted: `plugd lint` lists them.
const TOLD_AT_ONCE: usize = 20;

/// So many pairs are remembered as told; those beyond may be told again.
const REMEMBERED_MAX: usize = 10_000;

/// A pair of operations, by name.
type Pair = (OperationId, OperationId);

/// Starts to look, for as long as the engine lives.
pub(crate) fn start(engine: Weak<Inner>, shared: &Shared) {
    tokio::spawn(watch(engine, shared.registry.follow(), shared.config.subscribe()));
}

async fn watch(
    engine: Weak<Inner>,
    mut registry: watch::Receiver<Arc<Snapshot>>,
    mut configs: watch::Receiver<Arc<Config>>,
) {
    let mut told = BTreeSet::new();
    loop {
        until_still(&mut registry, &mut configs).await;
        let (snapshot, config) = (registry.borrow_and_update().clone(), configs.borrow_and_update().clone());
        told.retain(|(one, other): &Pair| is_there(&snapshot, one) && is_there(&snapshot, other));
        // Of very many declarations it takes a while, and calls are not to wait for that.
        let Ok(found) = tokio::task::spawn_blocking(move || look_at(&config, &snapshot)).await else {
            return;
        };
        let Some(engine) = engine.upgrade().map(Engine::of) else { return };
        // What is mended is forgotten: should it come back, that is news. What was not looked for is not mended.
        if found.len() <= OVERLAPS_MAX {
            let found: BTreeSet<(&OperationId, &OperationId)> =
                found.iter().map(|overlap| (&overlap.one, &overlap.other)).collect();
            told.retain(|(one, other)| found.contains(&(one, other)));
        }
        tell(engine.shared(), &found, &mut told);
        drop(engine);
        let changed = tokio::select! {
            changed = registry.changed() => changed,
            changed = configs.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}

/// Waits until nothing has changed for a moment.
async fn until_still(
    registry: &mut watch::Receiver<Arc<Snapshot>>,
    configs: &mut watch::Receiver<Arc<Config>>,
) {
    let ends = Instant::now() + LOOKED_AFTER;
    while Instant::now() < ends {
        let still = tokio::select! {
            changed = registry.changed() => changed.is_err(),
            changed = configs.changed() => changed.is_err(),
            () = tokio::time::sleep(STILL_FOR) => true,
        };
        if still {
            return;
        }
    }
}

fn is_there(snapshot: &Snapshot, id: &OperationId) -> bool {
    let registered = snapshot.plugin(&id.plugin);
    registered.is_some_and(|registered| registered.operations().iter().any(|operation| operation.id == *id))
}

fn look_at(config: &Config, snapshot: &Snapshot) -> Vec<Overlap> {
    let began = Instant::now();
    let enabled = config.plugins.values().filter(|plugin| plugin.enabled);
    let registered = enabled.filter_map(|plugin| snapshot.plugin(&plugin.name));
    let operations = registered.flat_map(|registered| registered.operations());
    let found =
        lint::overlapping(operations.map(|operation| (&operation.id, &operation.operation)), |_| true);
    let took_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    tracing::debug!(pairs = found.len(), took_us, "looked for operations that are for the same");
    found
}

/// Tells of the pairs that were not told yet.
fn tell(shared: &Shared, found: &[Overlap], told: &mut BTreeSet<Pair>) {
    let is_news = |overlap: &&Overlap| !told.contains(&(overlap.one.clone(), overlap.other.clone()));
    let news: Vec<&Overlap> = found.iter().take(OVERLAPS_MAX).filter(is_news).collect();
    for Overlap { one, other, finding } in news.iter().take(TOLD_AT_ONCE) {
        tracing::warn!(%one, %other, hint = finding.hint, "{}", finding.message);
        shared.events.emit(Event {
            plugin: Some(one.plugin.clone()),
            operation: Some(one.clone()),
            reason: Some(finding.message.clone()),
            ..happening("registry.overlap")
        });
    }
    if let Some(more) = news.len().checked_sub(TOLD_AT_ONCE).filter(|more| *more > 0) {
        let or_more = if found.len() > OVERLAPS_MAX { " or more" } else { "" };
        tracing::warn!("{more}{or_more} more pairs of operations seem to be for the same: `plugd lint`");
    }
    for overlap in news {
        if told.len() < REMEMBERED_MAX {
            told.insert((overlap.one.clone(), overlap.other.clone()));
        }
    }
}
