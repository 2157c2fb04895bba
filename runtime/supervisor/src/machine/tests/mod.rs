//! Tests of the machine: written scripts and simulated worlds.
