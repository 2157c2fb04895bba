//! Subscriptions: what is asked of the past first, then everything as it happens.
//!
//! A subscriber never delays anyone: what does not fit into its connection's buffer is counted and
//! left out, and it is told how much that was as soon as there is room again.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use jsonrpsee::server::{PendingSubscriptionSink, SubscriptionSink, TrySendError};
use jsonrpsee::types::Params;
use plugd_engine::Engine;
use plugd_protocol::control::{AsksParams, Event, EventsParams, LogEntry, LogStream, LogsParams, UnixMillis};
use plugd_protocol::plugin::LogLevel;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::asks::Followers;
use crate::methods::command_failed;
use crate::params;

/// The kind of event that says how many others are missing.
const DROPPED: &str = "events.dropped";

/// Serves one `events.subscribe` until it is ended or its client is gone.
///
/// `tail` is how many past events come first; none unless it is given.
pub(crate) async fn events(engine: &Engine, given: &Params<'_>, pending: PendingSubscriptionSink) {
    let params: EventsParams = match params::read(given) {
        Ok(params) => params,
        Err(error) => return pending.reject(error).await,
    };
    if let Err(error) = engine.expect_plugin(params.plugin.as_ref()) {
        return pending.reject(command_failed(error)).await;
    }
    // Following begins before the past is read, so that nothing falls between the two.
    let receiver = engine.follow_events();
    let past = match params.tail {
        Some(_) => engine.events(&params).await,
        None => Vec::new(),
    };
    let newest = past.last().map(|event| event.seq);
    let wanted = move |event: &Event| {
        newest.is_none_or(|newest| event.seq > newest)
            && params.plugin.as_ref().is_none_or(|plugin| event.plugin.as_ref() == Some(plugin))
    };
    let Ok(sink) = pending.accept().await else { return };
    Follower { sink, missed: 0, notice: missing_events }.run(past, receiver, wanted).await;
}

/// Serves one `logs.subscribe` until it is ended or its client is gone.
///
/// `tail` is how many past entries come first; none unless it is given.
pub(crate) async fn logs(engine: &Engine, given: &Params<'_>, pending: PendingSubscriptionSink) {
    let params: LogsParams = match params::read(given) {
        Ok(params) => params,
        Err(error) => return pending.reject(error).await,
    };
    if let Err(error) = engine.expect_plugin(params.plugin.as_ref()) {
        return pending.reject(command_failed(error)).await;
    }
    let mut receiver = engine.follow_logs();
    let mut past = match params.tail {
        Some(_) => engine.logs(&params).await,
        None => Vec::new(),
    };
    // Entries carry no number: what arrived while the past was read is taken from the stream
    // and added only where the past does not have it yet.
    let mut missed = 0;
    let mut known = past.clone();
    loop {
        match receiver.try_recv() {
            Ok(entry) => match known.iter().position(|earlier| *earlier == entry) {
                Some(index) => drop(known.swap_remove(index)),
                None if plugd_engine::logs::matches(&params, &entry) => past.push(entry),
                None => {}
            },
            Err(TryRecvError::Lagged(count)) => missed += count,
            Err(TryRecvError::Empty | TryRecvError::Closed) => break,
        }
    }
    let wanted = move |entry: &LogEntry| plugd_engine::logs::matches(&params, entry);
    let Ok(sink) = pending.accept().await else { return };
    Follower { sink, missed, notice: missing_logs }.run(past, receiver, wanted).await;
}

/// Serves one `asks.subscribe`: the questions of the calls that its connection makes.
pub(crate) async fn asks(followers: &Arc<Followers>, given: &Params<'_>, pending: PendingSubscriptionSink) {
    let params: AsksParams = match params::read(given) {
        Ok(params) => params,
        Err(error) => return pending.reject(error).await,
    };
    // It counts as followed before its client can know of it: no call of its comes too early.
    let (_following, mut notices) = followers.follow(pending.connection_id(), params);
    let Ok(sink) = pending.accept().await else { return };
    loop {
        let notice = tokio::select! {
            () = sink.closed() => return,
            Some(notice) = notices.recv() => notice,
        };
        // None is left out: the client is waited for, as its own call waits for the answer.
        if sink.send(json(&notice)).await.is_err() {
            return;
        }
    }
}

struct Follower<T> {
    sink: SubscriptionSink,
    /// How many it has missed since it was last told.
    missed: u64,
    /// Says how many are missing, in the stream's own terms.
    notice: fn(u64) -> Option<T>,
}

impl<T: Serialize + Clone> Follower<T> {
    async fn run(mut self, past: Vec<T>, mut receiver: Receiver<T>, wanted: impl Fn(&T) -> bool) {
        for item in past {
            // The past is bounded and already in memory: here waiting holds up nobody.
            if self.sink.send(json(&item)).await.is_err() {
                return;
            }
        }
        loop {
            let notice = (self.missed > 0).then(|| (self.notice)(self.missed)).flatten();
            let told = async {
                match &notice {
                    // Dropped unsent when something else happens first, and then made anew.
                    Some(notice) => self.sink.send(json(notice)).await,
                    None => std::future::pending().await,
                }
            };
            let received = tokio::select! {
                () = self.sink.closed() => return,
                told = told => {
                    if told.is_err() {
                        return;
                    }
                    self.missed = 0;
                    continue;
                }
                received = receiver.recv() => received,
            };
            let going_on = match received {
                Ok(item) if wanted(&item) => self.offer(&item),
                Ok(_) => true,
                Err(RecvError::Lagged(count)) => {
                    self.missed += count;
                    true
                }
                Err(RecvError::Closed) => return,
            };
            if !going_on {
                return;
            }
        }
    }

    /// Sends an item if there is room, after a notice of what is missing; false when all is over.
    fn offer(&mut self, item: &T) -> bool {
        if self.missed > 0
            && let Some(notice) = (self.notice)(self.missed)
        {
            match self.sink.try_send(json(&notice)) {
                Ok(()) => self.missed = 0,
                Err(TrySendError::Full(_)) => {
                    self.missed += 1;
                    return true;
                }
                Err(TrySendError::Closed(_)) => return false,
            }
        }
        match self.sink.try_send(json(item)) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.missed += 1;
                true
            }
            Err(TrySendError::Closed(_)) => false,
        }
    }
}

fn json<T: Serialize>(item: &T) -> Box<RawValue> {
    to_raw_value(item).expect("events, log entries and questions are JSON")
}

fn missing_events(count: u64) -> Option<Event> {
    Some(Event {
        seq: 0,
        at: now(),
        kind: DROPPED.into(),
        plugin: None,
        generation: None,
        reason: Some(format!("{count} events were left out: this subscriber reads too slowly")),
        call_id: None,
        operation: None,
        status: None,
        duration_us: None,
        detail: Some(serde_json::json!({ "dropped": count })),
    })
}

fn missing_logs(count: u64) -> Option<LogEntry> {
    Some(LogEntry {
        at: now(),
        plugin: plugd_protocol::PluginName::new("plugd").ok()?,
        generation: 0,
        stream: LogStream::Runtime,
        level: LogLevel::Warn,
        call_id: None,
        session_id: None,
        trace_id: None,
        text: format!("{count} entries were left out: this subscriber reads too slowly"),
    })
}

fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
