//! The SDKs' figures as lines for programs and as a part of the page.

use std::fmt::Write;

use crate::report::{known, ratio, row};
use crate::sdks::{LANGUAGES, NODE_BLOCKING, PAYLOADS, REPETITIONS, SLICE, Sdks};
use crate::stats::Spread;
use crate::suite::alone;

/// The figures that programs watch, by name; each is a median.
///
/// By a bare loop: how many times as long a call takes. By a peer: how many times as long the peer takes.
pub(crate) fn figures(sdks: &Sdks) -> Vec<(String, String)> {
    let mut figures = Vec::new();
    let mut add = |name: String, spread: Option<Spread>| {
        let value = spread.map_or("unknown".to_owned(), |spread| format!("{:.2}", spread.median));
        figures.push((name, value));
    };
    for language in &LANGUAGES {
        let name = language.name;
        for (payload, size) in PAYLOADS.into_iter().zip(["", "_1kib"]) {
            let by_loop = round_trip_ratio(sdks, language.sdk, language.bare_loop, payload);
            add(format!("sdk_{name}{size}_vs_loop"), by_loop);
        }
        if let Some(peer) = &language.peer {
            add(peer.figure.to_owned(), round_trip_ratio(sdks, peer.name, language.sdk, PAYLOADS[0]));
        }
    }
    figures
}

/// The part of the page.
pub(crate) fn section(sdks: &Sdks) -> String {
    let mut text =
        "## A handler in each language\n\nAn echo with one call in flight. By the same language's bare \
                    loop:\n\n| program | 32 B | 1 KiB |\n|---|---|---|\n"
            .to_owned();
    for (name, bare_loop) in rows() {
        let cell = |payload| round_trip_ratio(sdks, name, bare_loop, payload).map(|ratio| ratio.to_string());
        row(&mut text, &cells(name, cell));
    }
    text += "\nMedian round trip, and the processor time that the program takes for a call, in microseconds:\n\n\
             | program | 32 B | 1 KiB | processor, 32 B | processor, 1 KiB |\n|---|---|---|---|---|\n";
    for (name, _) in rows() {
        let mut line = cells(name, |payload| known(&sdks.samples.p50_us(name, alone(payload))));
        line.extend_from_slice(
            &cells(name, |payload| known(&sdks.samples.cpu_us(name, alone(payload))))[1..],
        );
        row(&mut text, &line);
    }
    for (name, why) in &sdks.absent {
        let _ = writeln!(text, "\n**Not measured: {name}.** {why}.");
    }
    let _ = writeln!(text, "\nWith {}.\n\n{}", sdks.versions.join("; "), method());
    text
}

/// The contenders with their bare loops, in the order of the tables.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    LANGUAGES.iter().flat_map(|language| {
        let blocking = (language.name == "node").then_some(NODE_BLOCKING);
        let peer = language.peer.as_ref().map(|peer| peer.name);
        let all = [Some(language.bare_loop), blocking, Some(language.sdk), peer];
        all.into_iter().flatten().map(|name| (name, language.bare_loop))
    })
}

fn method() -> String {
    format!(
        "A host of blocking reads and writes drives all of them over pipes, in turns of {} ms, {REPETITIONS} \
         repetitions after half a second of warming up each; every answer is checked. The programs are in \
         `tests/bench/programs` and `tests/bench/src/bin`. A bare loop reads a line, parses it, takes one text out, \
         builds the answer and writes it, with the standard library (in Rust with serde) and no check of anything. Node's natural \
         one is `readline` and `process.stdout`; the blocking one does without the event loop and can do nothing \
         else meanwhile. FastMCP and the official MCP SDK serve the same echo as a tool, over stdio, after \
         `initialize`; an MCP server answers with a content list, and FastMCP with the text twice.\n",
        SLICE.as_millis()
    )
}

fn cells(name: &str, cell: impl Fn(usize) -> Option<String>) -> Vec<String> {
    let cells = PAYLOADS.map(|payload| cell(payload).unwrap_or_else(|| "–".to_owned()));
    [&[name.to_owned()], &cells[..]].concat()
}

fn round_trip_ratio(sdks: &Sdks, name: &'static str, by: &'static str, payload: usize) -> Option<Spread> {
    let p50 = |name| sdks.samples.p50_us(name, alone(payload));
    ratio(&p50(name), &p50(by))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::{Figures, Samples};

    #[test]
    fn each_sdk_is_held_against_its_loop_and_its_peer() {
        let mut samples = Samples::default();
        let mut add = |name, payload, p50_us| {
            samples.add(name, alone(payload), Figures { p50_us, per_second: 1.0, cpu_us: Some(2.0) });
        };
        add("Python, bare loop", 32, 20.0);
        add("Python, SDK", 32, 25.0);
        add("Python, FastMCP", 32, 1000.0);
        add("Rust, bare loop", 1024, 10.0);
        add("Rust, SDK", 1024, 11.0);
        let absent = vec![("Go, SDK", "there is no Go".to_owned())];
        let sdks = Sdks { samples, absent, versions: vec!["Python 3".to_owned()] };
        let lines: Vec<String> =
            figures(&sdks).iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let expected = [
            "sdk_python_vs_loop: 1.25",
            "sdk_python_1kib_vs_loop: unknown",
            "sdk_python_vs_fastmcp: 40.00",
            "sdk_node_vs_loop: unknown",
            "sdk_node_1kib_vs_loop: unknown",
            "sdk_node_vs_mcp: unknown",
            "sdk_go_vs_loop: unknown",
            "sdk_go_1kib_vs_loop: unknown",
            "sdk_rust_vs_loop: unknown",
            "sdk_rust_1kib_vs_loop: 1.10",
        ];
        assert_eq!(lines, expected);
        assert!(section(&sdks).contains("**Not measured: Go, SDK.** there is no Go."));
    }
}
