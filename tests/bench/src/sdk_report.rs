//! The SDKs' figures as lines for programs and as a part of the page.

use std::fmt::Write;

use crate::contender::Figures;
use crate::dialogue::{WARM_UP_CALLS, WARM_UP_MAX};
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
            let by_loop = mean_ratio(sdks, language.sdk, language.bare_loop, payload);
            add(format!("sdk_{name}{size}_vs_loop"), by_loop);
        }
        for peer in language.peers {
            add(peer.figure.to_owned(), mean_ratio(sdks, peer.name, language.sdk, PAYLOADS[0]));
        }
    }
    figures
}

/// The part of the page.
pub(crate) fn section(sdks: &Sdks) -> String {
    let mut text = "## A handler in each language\n\nAn echo with one call in flight. Its mean round trip by that of the \
                    same language's bare loop:\n\n| program | 32 B | 1 KiB |\n|---|---|---|\n"
        .to_owned();
    for (name, bare_loop) in rows() {
        let ratios = PAYLOADS.map(|payload| text_of(mean_ratio(sdks, name, bare_loop, payload)));
        row(&mut text, &[&[name.to_owned()], &ratios[..]].concat());
    }
    text += "\nIn microseconds, the mean and the median round trip, and the processor time that the program takes for \
             a call:\n\n\
             | program | mean, 32 B | median | processor | mean, 1 KiB | median | processor |\n\
             |---|---|---|---|---|---|---|\n";
    for (name, _) in rows() {
        let cells = PAYLOADS.map(|payload| {
            let figure = |of: fn(&Figures) -> f64| {
                known(&sdks.samples.values(name, alone(payload), of)).unwrap_or_else(|| "–".to_owned())
            };
            [figure(|it| it.mean_us), figure(|it| it.p50_us), figure(|it| it.cpu_us)]
        });
        row(&mut text, &[&[name.to_owned()], cells.as_flattened()].concat());
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
        let ours = [Some(language.bare_loop), blocking, Some(language.sdk)];
        let peers = language.peers.iter().map(|peer| peer.name);
        ours.into_iter().flatten().chain(peers).map(|name| (name, language.bare_loop))
    })
}

fn method() -> String {
    format!(
        "A host of blocking reads and writes drives all of them over pipes, in turns of {} ms, {REPETITIONS} \
         repetitions; before, each takes {WARM_UP_CALLS} calls, or as many as {} s allow. Every answer is checked. \
         Host and programs share one core: otherwise it is the scheduler's choice of cores that is measured, since \
         on this machine the wake-up of another core takes longer than a whole call. Ratios are of means: garbage of a \
         call is collected later.\n\n\
         A bare loop reads a line, parses it, takes one text out, builds the answer and writes it, with the standard \
         library (in Rust with serde), and checks nothing. Node's natural one is `readline` and `process.stdout`; \
         the blocking one does without the event loop and can do nothing else meanwhile. FastMCP and the official \
         MCP SDK serve the same echo as a tool over stdio, in the setup of their documentation: after `initialize` \
         of 2025-11-25, and as MCP is since 2026-07-28, where each request says what it needs. An MCP server answers \
         with a content list, and FastMCP with the text twice. The programs are in `tests/bench/programs` and \
         `tests/bench/src/bin`.\n",
        SLICE.as_millis(),
        WARM_UP_MAX.as_secs()
    )
}

fn text_of(ratio: Option<Spread>) -> String {
    ratio.map_or_else(|| "–".to_owned(), |ratio| ratio.to_string())
}

/// By means: a language that collects garbage pays for a call some time after it.
fn mean_ratio(sdks: &Sdks, name: &'static str, by: &'static str, payload: usize) -> Option<Spread> {
    let mean = |name| sdks.samples.values(name, alone(payload), |figures| figures.mean_us);
    ratio(&mean(name), &mean(by))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Samples;

    #[test]
    fn each_sdk_is_held_against_its_loop_and_its_peer() {
        let mut samples = Samples::default();
        let mut add = |name, payload, mean_us| {
            samples.add(name, alone(payload), Figures { p50_us: 9.0, per_second: 1.0, mean_us, cpu_us: 2.0 });
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
            "sdk_python_vs_fastmcp_2026: unknown",
            "sdk_node_vs_loop: unknown",
            "sdk_node_1kib_vs_loop: unknown",
            "sdk_node_vs_mcp: unknown",
            "sdk_node_vs_mcp_2026: unknown",
            "sdk_go_vs_loop: unknown",
            "sdk_go_1kib_vs_loop: unknown",
            "sdk_rust_vs_loop: unknown",
            "sdk_rust_1kib_vs_loop: 1.10",
        ];
        assert_eq!(lines, expected);
        assert!(section(&sdks).contains("**Not measured: Go, SDK.** there is no Go."));
    }
}
