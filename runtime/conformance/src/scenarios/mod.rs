//! All scenarios, by what they are about.

mod calling;
mod calls;
mod coming_up;
mod declared;
mod frames;
mod heard;
mod leaving;
mod messages;
mod resources;
mod undescribed;

use crate::scenario::Scenario;

/// The scenarios by what they are about, in the order of `docs/checking.md`.
pub const GROUPS: &[(&str, &[Scenario])] = &[
    ("Coming up", coming_up::SCENARIOS),
    ("What it declares", declared::SCENARIOS),
    ("Messages", messages::SCENARIOS),
    ("Lines", frames::SCENARIOS),
    ("Calls", calls::SCENARIOS),
    ("Leaving", leaving::SCENARIOS),
    ("Resources", resources::SCENARIOS),
    ("All that was heard", heard::SCENARIOS),
];

/// Every scenario.
pub fn scenarios() -> impl Iterator<Item = &'static Scenario> {
    GROUPS.iter().flat_map(|(_, group)| group.iter())
}
