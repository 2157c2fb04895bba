//! A line to a message, whatever the bytes: see `plugd_protocol_fuzz::message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plugd_protocol_fuzz::message(bytes));
