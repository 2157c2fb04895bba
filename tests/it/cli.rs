//! The command line: what each part of it promises to people and to scripts.

mod arguments;
mod confirming;
mod doctor;
mod documents;
mod exit_codes;
mod explaining;
mod help;
mod jobs;
mod missing;
mod output;
mod passing_on;
mod profiles;
mod record;
mod results;
mod second;
mod typed;
mod words;
