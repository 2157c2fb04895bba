//! An answer to a manifest, whatever the bytes: see `plugd_protocol_fuzz::manifest`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plugd_protocol_fuzz::manifest(bytes));
