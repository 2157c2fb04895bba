//! Lives of plugins: stages, states, restarts, stops.
