//! Bytes to frames, whatever the bytes: see `plugd_protocol_fuzz::decoder`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plugd_protocol_fuzz::decoder(bytes));
