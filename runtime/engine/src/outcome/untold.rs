//! Keys whose calls have ended in this engine without the store being told, or surely told.

use std::collections::HashMap;

use plugd_store::KeyedCall;
use serde_json::value::RawValue;

use super::keys::Scope;

/// So many calls of which the store was not told are remembered; beyond it the oldest go.
const UNTOLD_MAX: usize = 1_000;

/// The answers among them take at most so much room.
const UNTOLD_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Calls that ended in this engine, and what the store may not know of them; it may still take them for
/// calls that run.
#[derive(Debug, Default)]
pub(super) struct Untold {
    by_scope: HashMap<Scope, Left>,
    /// The length of all answers in there.
    bytes: usize,
}

/// What a call with a key has left behind.
#[derive(Debug, Clone)]
pub(super) struct Left {
    pub(super) call: KeyedCall,
    pub(super) came_to: CameTo,
}

/// What came of a call, as far as this engine knows.
#[derive(Debug, Clone)]
pub(super) enum CameTo {
    /// Nobody knows.
    Unknown,
    /// This answer; none where it is too large to be held.
    Answer(Option<Box<RawValue>>),
    /// It did not run, or may run again.
    Nothing,
}

impl Untold {
    /// Remembers what came of a call.
    pub(super) fn put(&mut self, scope: Scope, mut left: Left) {
        self.forget(&scope);
        if self.by_scope.len() >= UNTOLD_MAX {
            let oldest = self.by_scope.iter().min_by_key(|(_, left)| left.call.at);
            let oldest = oldest.map(|(scope, _)| scope.clone());
            oldest.inspect(|oldest| self.forget(oldest));
        }
        if let CameTo::Answer(answer) = &mut left.came_to {
            *answer = answer.take().filter(|json| self.bytes + json.get().len() <= UNTOLD_BYTES_MAX);
        }
        self.bytes += left.bytes();
        self.by_scope.insert(scope, left);
    }

    /// What the latest call with a key has left behind.
    pub(super) fn get(&self, scope: &Scope) -> Option<Left> {
        self.by_scope.get(scope).cloned()
    }

    /// Forgets it: the store knows.
    pub(super) fn forget(&mut self, scope: &Scope) {
        let left = self.by_scope.remove(scope);
        self.bytes -= left.map_or(0, |left| left.bytes());
    }
}

impl Left {
    fn bytes(&self) -> usize {
        match &self.came_to {
            CameTo::Answer(Some(json)) => json.get().len(),
            CameTo::Answer(None) | CameTo::Unknown | CameTo::Nothing => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plugd_protocol::control::UnixMillis;
    use plugd_protocol::{CallId, OperationId};

    fn left(number: u64, answer: usize) -> (Scope, Left) {
        let call = KeyedCall {
            caller: None,
            key: number.to_string().into(),
            operation: OperationId::parse("shop.order").expect("an operation"),
            arguments_digest: [0; 32],
            call_id: CallId::new(number.to_string()),
            at: UnixMillis(number),
            idempotent: false,
        };
        let answer = serde_json::value::to_raw_value(&"x".repeat(answer)).expect("JSON");
        (Scope::of(&call), Left { call, came_to: CameTo::Answer(Some(answer)) })
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_oldest_goes_first() {
        let mut untold = Untold::default();
        for number in 0..UNTOLD_MAX as u64 + 5 {
            let (scope, left) = left(number, 10);
            untold.put(scope, left);
        }
        assert_eq!(untold.by_scope.len(), UNTOLD_MAX);
        assert_eq!(untold.bytes, UNTOLD_MAX * 12);
        assert!(untold.get(&left(4, 0).0).is_none() && untold.get(&left(5, 0).0).is_some());
        // That it was answered is remembered also where the answer has no room.
        let (scope, large) = left(9_999, UNTOLD_BYTES_MAX);
        untold.put(scope.clone(), large);
        assert!(matches!(untold.get(&scope), Some(Left { came_to: CameTo::Answer(None), .. })));
        for number in 0..10_000 {
            untold.forget(&left(number, 0).0);
        }
        assert_eq!((untold.by_scope.len(), untold.bytes), (0, 0));
    }
}
