//! The command line: what each part of it promises to people and to scripts.

mod arguments;
mod exit_codes;
mod help;
mod output;
