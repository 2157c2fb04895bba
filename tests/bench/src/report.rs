//! The findings as lines for programs and as a page for people.

use std::fmt::Write;
use std::time::Duration;

use crate::contender::{
    ENGINE, ENGINE_SDK, Pair, RAW, RMCP_BEST, RMCP_DEFAULT, SOCKET, SOCKETPAIR, Samples, UNRECORDED,
};
use crate::crowd::CROWD;
use crate::facts::Facts;
use crate::lives::MANY;
use crate::one_core;
use crate::record::{MILLION, Record};
use crate::sdk_report;
use crate::stats::{Spread, three_digits};
use crate::suite::{Findings, MANY_IN_FLIGHT, PAYLOADS, Plan, alone, crowded};

const CONTENDERS: [&str; 8] =
    [RAW, ENGINE, SOCKETPAIR, UNRECORDED, ENGINE_SDK, SOCKET, RMCP_DEFAULT, RMCP_BEST];

/// The figures that programs watch, by name, of what was measured; each is a median.
pub(crate) fn main_figures(findings: &Findings) -> Vec<(String, String)> {
    let figures = [
        ("engine_32b_vs_raw", round_trip_ratio(findings, ENGINE, RAW, 32)),
        ("engine_32b_vs_rmcp_default", round_trip_ratio(findings, ENGINE, RMCP_DEFAULT, 32)),
        ("engine_32b_vs_rmcp_best", round_trip_ratio(findings, ENGINE, RMCP_BEST, 32)),
        ("engine_64kib_vs_raw", round_trip_ratio(findings, ENGINE, RAW, 64 * 1024)),
        ("engine_1mib_vs_raw", round_trip_ratio(findings, ENGINE, RAW, 1024 * 1024)),
        ("engine_1mib_socketpair_vs_raw", round_trip_ratio(findings, SOCKETPAIR, RAW, 1024 * 1024)),
        ("engine_64_inflight_vs_rmcp_default", rate_ratio(findings, ENGINE, RMCP_DEFAULT, 32)),
        ("engine_64_inflight_vs_rmcp_best", rate_ratio(findings, ENGINE, RMCP_BEST, 32)),
        ("engine_64_inflight_host_s_per_100k", host_time(findings, UNRECORDED)),
        ("engine_64_inflight_recorded_host_s_per_100k", host_time(findings, ENGINE)),
        ("engine_32b_vs_unrecorded", recording_alone(findings)),
        ("engine_64_inflight_vs_unrecorded", recording_crowded(findings)),
        ("socket_32b_vs_two_raw_hops", two_hops_ratio(findings)),
        ("socket_64_inflight_vs_engine", rate_ratio(findings, SOCKET, ENGINE, 32)),
        ("cli_call_vs_curl", Some(findings.command.ratio())),
        ("crash_to_answer_vs_spawn", Some(findings.crash.ratio())),
        ("crash_to_answer_with_spare_vs_spawn", Some(findings.crash_with_spare.ratio())),
        ("spawn_50_vs_raw", Some(findings.many_starts.ratio())),
        ("spawn_500_vs_raw", Some(findings.crowd.ratio())),
        ("start_500_cached", Some(findings.known.ratio())),
        ("rss_per_idle_plugin_kib", Some(Spread::of(&findings.rss_kib))),
        ("rss_running_idle_vs_not_running_kib", Some(Spread::of(&findings.run_rss_kib))),
    ];
    figures
        .into_iter()
        .filter_map(|(name, spread)| Some((name.to_owned(), format!("{:.2}", spread?.median))))
        .chain(findings.one_core.iter().flat_map(one_core_figures))
        .chain(findings.sdks.iter().flat_map(sdk_report::figures))
        .chain(findings.record.iter().flat_map(record_figures))
        .collect()
}

/// The figures of a million recorded calls; those in milliseconds are medians.
pub(crate) fn record_figures(record: &Record) -> Vec<(String, String)> {
    let median = |values: &[f64]| three_digits(Spread::of(values).median);
    let figures = [
        ("million_calls_list_ms", median(&record.list)),
        ("million_calls_show_ms", median(&record.show)),
        ("million_calls_stats_ms", median(&record.stats)),
        ("million_open_ms", median(&record.open)),
        ("million_file_mib", three_digits(record.file_mib)),
        ("record_rows_per_second", median(&record.rows_per_second)),
    ];
    figures.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// The whole page.
pub(crate) fn page(findings: &Findings, plan: &Plan, facts: &Facts, took: Duration) -> String {
    let parts = [
        introduction(facts, took),
        main_table(findings),
        round_trips(findings),
        findings.one_core.as_ref().map(on_one_core).unwrap_or_default(),
        rates(findings),
        lives(findings),
        findings.sdks.as_ref().map(sdk_report::section).unwrap_or_default(),
        findings.record.as_ref().map(record).unwrap_or_default(),
        method(plan),
    ];
    parts.join("\n")
}

fn introduction(facts: &Facts, took: Duration) -> String {
    let Facts { date, cores, cpu, memory_gib, kernel, rustc } = facts;
    format!(
        "# What a call costs\n\n\
         `make bench` wrote this page; it measures and judges nothing. Ratios carry over to other \
         machines, absolute times do not. Every ratio is the median of the ratios of the single \
         repetitions, with the least and the greatest in brackets: where two brackets overlap, the \
         difference is not resolved.\n\n\
         | | |\n|---|---|\n\
         | date | {date} |\n| cores | {cores} |\n| processor | {cpu} |\n| memory | {memory_gib} GiB |\n\
         | kernel | {kernel} |\n| compiler | {rustc}, release profile |\n| time taken | {} s |\n",
        took.as_secs()
    )
}

fn main_table(findings: &Findings) -> String {
    let mut text = "## In short\n\n| figure | median |\n|---|---|\n".to_owned();
    for (name, value) in main_figures(findings) {
        row(&mut text, &[format!("`{name}`"), value]);
    }
    text + "\n`make bench-quick` prints most of them from a shorter run, `make bench-sdks` those of the SDKs.\n"
}

fn round_trips(findings: &Findings) -> String {
    let mut text =
        "## Round trips, one call in flight\n\nBy `raw`'s round trip of the same size:\n\n".to_owned();
    header(&mut text, "contender");
    for name in CONTENDERS {
        cells(&mut text, name, |payload| {
            round_trip_ratio(findings, name, RAW, payload).map(|ratio| ratio.to_string())
        });
    }
    text += "\nMedian round trip, in microseconds:\n\n";
    header(&mut text, "contender");
    for name in CONTENDERS {
        cells(&mut text, name, |payload| known(&findings.samples.p50_us(name, alone(payload))));
    }
    if let Some(hops) = two_hops_ratio(findings) {
        let _ = writeln!(
            text,
            "\nThrough the socket a call makes two hops, to the daemon and on to the plugin: at 32 B that takes \
             {hops} times two `raw` round trips."
        );
    }
    text
}

fn rates(findings: &Findings) -> String {
    let mut text = format!(
        "## Calls per second, {MANY_IN_FLIGHT} calls in flight\n\nBy rmcp's rate in its default setup; \
         more is better:\n\n"
    );
    header(&mut text, "contender");
    for name in &CONTENDERS[1..] {
        cells(&mut text, name, |payload| {
            rate_ratio(findings, name, RMCP_DEFAULT, payload).map(|ratio| ratio.to_string())
        });
    }
    text += "\nCalls per second:\n\n";
    header(&mut text, "contender");
    for name in &CONTENDERS[1..] {
        cells(&mut text, name, |payload| known(&findings.samples.per_second(name, crowded(payload))));
    }
    if let (Some(engine), Some(recorded)) = (host_time(findings, UNRECORDED), host_time(findings, ENGINE)) {
        let _ = writeln!(
            text,
            "\nOf the processors the host takes {engine} s for 100,000 calls of 32 B without the record, and {recorded} s \
             with it, the thread that writes included."
        );
    }
    text
}

fn lives(findings: &Findings) -> String {
    let mut text =
        "## Processes\n\n| what | by | ratio | ms | the other's ms |\n|---|---|---|---|---|\n".to_owned();
    let many = format!("{MANY} plugins from the order to ready");
    let many_bare = format!("{MANY} bare starts to first answers");
    let crowd = format!("{CROWD} plugins from the order to first answers");
    let crowd_bare = format!("{CROWD} bare starts to first answers");
    let known = format!("an engine that lists {CROWD} plugins it has described before");
    let pairs: [(&str, &str, &Pair); 6] = [
        ("`plugd call`, a whole process", "`curl` with the same POST", &findings.command),
        ("`kill -9` to the next answer", "a bare start to the first answer", &findings.crash),
        ("the same with `spares = 1`", "a bare start to the first answer", &findings.crash_with_spare),
        (&many, &many_bare, &findings.many_starts),
        (&crowd, &crowd_bare, &findings.crowd),
        (&known, "one that describes them", &findings.known),
    ];
    for (what, by, pair) in pairs {
        let milliseconds = |times: &[f64]| three_digits(Spread::of(times).median / 1000.0);
        let ratio = pair.ratio().to_string();
        row(
            &mut text,
            &[what.into(), by.into(), ratio, milliseconds(&pair.ours), milliseconds(&pair.theirs)],
        );
    }
    let (whole, run) = (Spread::of(&findings.rss_kib), Spread::of(&findings.run_rss_kib));
    let _ = writeln!(
        text,
        "\nHost memory per idle plugin: {whole} KiB. Of a plugin that runs and idles, beyond one that is known and \
         does not run: {run} KiB."
    );
    text
}

fn record(record: &Record) -> String {
    let Record { list, show, stats, open, file_mib, rows_per_second } = record;
    let mut text = "## A million recorded calls\n\n| what | ms |\n|---|---|\n".to_owned();
    let times = [
        ("to open the file and take a row", open),
        ("to open it and list calls, the slowest of seven filters", list),
        ("to open it and show one call", show),
        ("to open it and give the statistics of 20 days", stats),
    ];
    for (what, times) in times {
        row(&mut text, &[what.to_owned(), Spread::of(times).to_string()]);
    }
    let _ = writeln!(
        text,
        "\nThe file has {} MiB: a row of {} bytes with all that belongs to it. One task alone records {} rows a \
         second, until all are in the file.",
        three_digits(*file_mib),
        three_digits(file_mib * 1024.0 * 1024.0 / MILLION as f64),
        Spread::of(rows_per_second),
    );
    text
}

fn method(plan: &Plan) -> String {
    let Plan {
        call_repetitions, slice, life_repetitions, crowd_repetitions, record_repetitions, each, ..
    } = plan;
    let slice_ms = slice.as_millis();
    format!(
        "## How it is measured\n\n\
         - One run, one harness. In every case the contenders take turns of {slice_ms} ms, one directly \
         after the other, {call_repetitions} repetitions after a round of warming up. A turn gives the \
         median of its round trips, or the calls answered per second.\n\
         - The payload is ASCII text without escapes: JSON's best case. Every answer is checked to have \
         come back whole.\n\
         - `raw`: blocking reads and writes over two pipes, newline-framed, no JSON, one call at a time. \
         Many in flight over it would measure batching, so it has no rate.\n\
         - `engine`: the engine in this process on a current-thread runtime, through the whole pipeline \
         (resolved, validated, with a deadline, queued), to a plugin of blocking reads and writes \
         without the SDK. `engine, SDK plugin`: the same with a plugin made with the SDK, which decodes \
         and encodes a typed value. `engine, socketpair`: the first one under `stdio = \"socketpair\"`.\n\
         - `socket`: one client connected to a daemon in a process of its own, which runs the same plugin.\n\
         - `rmcp default`: client and server of rmcp 3.11 as its documentation has them, multi-thread \
         tokio on both sides, `TokioChildProcess` and `stdio()`. `rmcp best`: current-thread tokio on \
         both sides over plain non-blocking pipes. rmcp decodes a typed value on both sides of each \
         call, which its API makes a user pay; the engine passes raw JSON on. So from 64 KiB up this \
         compares more than transports.\n\
         - Processes: {life_repetitions} repetitions; commands, crashes and bare starts {each} times in \
         each, of which the median counts. Both sides take turns. A crash is timed from before the kill \
         to the first answer of the next run, back-off and restart window set aside; with a spare it comes \
         once that is ready. The {MANY} plugins \
         are described and initialised; the bare ones only spawned and asked once.\n\
         - Hundreds of plugins: {crowd_repetitions} repetitions. Listing without describing is to open an \
         engine as the daemon does, on a state folder with their manifests or without.\n\
         - Memory: in a fresh process each time, the growth of its resident size from 10 to {MANY} \
         plugins that have answered one call and idle, per plugin. For a run alone, all of them have run \
         before and were stopped, what is kept of events is full and what the allocator had in hand is \
         used up; then the growth is taken from 10 to 110 running plugins.\n\
         - The record: calls of 40 operations, spread over 29 days, with some 90 bytes of arguments, 60 to 700 \
         of data and a summary; {record_repetitions} repetitions. The file is in the kernel's memory.\n\
         - A virtual machine may change its speed by 1.4 at any moment, within a repetition too. Taking \
         turns keeps most of that out of the ratios, not all.\n"
    )
}

fn round_trip_ratio(
    findings: &Findings,
    name: &'static str,
    by: &'static str,
    payload: usize,
) -> Option<Spread> {
    let case = alone(payload);
    ratio(&findings.samples.p50_us(name, case), &findings.samples.p50_us(by, case))
}

fn rate_ratio(findings: &Findings, name: &'static str, by: &'static str, payload: usize) -> Option<Spread> {
    let case = crowded(payload);
    ratio(&findings.samples.per_second(name, case), &findings.samples.per_second(by, case))
}

/// The processor time that the host takes for 100,000 calls, in seconds.
fn host_time(findings: &Findings, name: &'static str) -> Option<Spread> {
    let per_call = findings.samples.values(name, crowded(32), |figures| figures.cpu_us);
    let seconds: Vec<f64> = per_call.iter().map(|micros| micros * 100_000.0 / 1e6).collect();
    (!seconds.is_empty()).then(|| Spread::of(&seconds))
}

/// A round trip that is recorded by one that is not.
fn recording_alone(findings: &Findings) -> Option<Spread> {
    let p50 = |name| findings.samples.p50_us(name, alone(32));
    ratio(&p50(ENGINE), &p50(UNRECORDED))
}

/// The rate of calls that are recorded by that of calls that are not.
fn recording_crowded(findings: &Findings) -> Option<Spread> {
    let rate = |name| findings.samples.per_second(name, crowded(32));
    ratio(&rate(ENGINE), &rate(UNRECORDED))
}

/// The round trips over pipes and over sockets, by `raw`'s.
pub(crate) fn stream_figures(samples: &Samples) -> Vec<(String, String)> {
    let names = [ENGINE, SOCKETPAIR].into_iter();
    let each = names.flat_map(|name| PAYLOADS.map(|payload| (name, payload)));
    let figure = |(name, payload): (&'static str, usize)| {
        let case = alone(payload);
        let ratio = ratio(&samples.p50_us(name, case), &samples.p50_us(RAW, case));
        (format!("{name}, {payload} B"), ratio.map_or_else(String::new, |ratio| ratio.to_string()))
    };
    each.map(figure).collect()
}

/// The round trips on one core, by name.
pub(crate) fn one_core_figures(samples: &Samples) -> Vec<(String, String)> {
    let p50 = |name| samples.p50_us(name, alone(32));
    let figures =
        [("engine_32b_one_core_vs_raw", ENGINE), ("engine_32b_unrecorded_one_core_vs_raw", UNRECORDED)];
    let value = |(figure, name): (&str, &'static str)| {
        let ratio = ratio(&p50(name), &p50(RAW))?;
        Some((figure.to_owned(), format!("{:.2}", ratio.median)))
    };
    figures.into_iter().filter_map(value).collect()
}

/// Their part of the page.
pub(crate) fn on_one_core(samples: &Samples) -> String {
    let mut text = format!(
        "## Round trips on one core\n\nHost and plugin share a core, so no wake-up of another one hides what they \
         do themselves; this is the steadier figure. In turns of {} ms, {} repetitions, one call in flight; the \
         thread that records shares the core as well.\n\n\
         | contender | 32 B, by `raw` | µs | 1 KiB, by `raw` | µs |\n|---|---|---|---|---|\n",
        one_core::SLICE.as_millis(),
        one_core::REPETITIONS
    );
    for name in one_core::CONTENDERS {
        let cells = one_core::PAYLOADS.map(|payload| {
            let p50 = |name| samples.p50_us(name, alone(payload));
            let by_raw = ratio(&p50(name), &p50(RAW)).map(|ratio| ratio.to_string());
            [by_raw, known(&p50(name))].map(Option::unwrap_or_default)
        });
        row(&mut text, &[&[name.to_owned()], &cells.concat()[..]].concat());
    }
    text
}

fn two_hops_ratio(findings: &Findings) -> Option<Spread> {
    let hop = findings.samples.p50_us(RAW, alone(32));
    let two_hops: Vec<f64> = hop.iter().map(|hop| 2.0 * hop).collect();
    ratio(&findings.samples.p50_us(SOCKET, alone(32)), &two_hops)
}

pub(crate) fn ratio(ours: &[f64], theirs: &[f64]) -> Option<Spread> {
    (!ours.is_empty() && !theirs.is_empty()).then(|| Spread::of_ratios(ours, theirs))
}

pub(crate) fn known(values: &[f64]) -> Option<String> {
    (!values.is_empty()).then(|| three_digits(Spread::of(values).median))
}

fn header(text: &mut String, first: &str) {
    let sizes = PAYLOADS.map(|payload| match payload {
        bytes if bytes < 1024 => format!("{bytes} B"),
        bytes if bytes < 1024 * 1024 => format!("{} KiB", bytes / 1024),
        bytes => format!("{} MiB", bytes / 1024 / 1024),
    });
    row(text, &[&[first.to_owned()], &sizes[..]].concat());
    *text += &"|---".repeat(PAYLOADS.len() + 1);
    *text += "|\n";
}

fn cells(text: &mut String, first: &str, cell: impl Fn(usize) -> Option<String>) {
    let cells = PAYLOADS.map(|payload| cell(payload).unwrap_or_else(|| "–".to_owned()));
    row(text, &[&[first.to_owned()], &cells[..]].concat());
}

pub(crate) fn row(text: &mut String, cells: &[String]) {
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Figures;

    #[test]
    fn programs_find_every_main_figure_by_its_name() {
        let mut samples = Samples::default();
        let figures = |p50_us, per_second| Figures { p50_us, per_second, mean_us: 0.0, cpu_us: 4.0 };
        let mut add = |name, case, p50_us, per_second| samples.add(name, case, figures(p50_us, per_second));
        add(RAW, alone(32), 10.0, 1.0);
        add(ENGINE, alone(32), 15.0, 1.0);
        add(UNRECORDED, alone(32), 10.0, 1.0);
        add(SOCKET, alone(32), 60.0, 1.0);
        add(RAW, alone(1024 * 1024), 100.0, 1.0);
        add(ENGINE, alone(1024 * 1024), 250.0, 1.0);
        add(SOCKETPAIR, alone(1024 * 1024), 190.0, 1.0);
        add(ENGINE, crowded(32), 1.0, 300.0);
        add(UNRECORDED, crowded(32), 1.0, 400.0);
        add(RMCP_DEFAULT, crowded(32), 1.0, 10.0);
        let mut one_core = Samples::default();
        let one = [(RAW, 5.0), (ENGINE, 11.0), (UNRECORDED, 10.0)].into_iter();
        one.for_each(|(name, p50_us)| one_core.add(name, alone(32), figures(p50_us, 1.0)));
        let pair = |ours, theirs| Pair { ours: vec![ours], theirs: vec![theirs] };
        let findings = Findings {
            samples,
            command: pair(3.0, 4.0),
            crash: pair(7.0, 5.0),
            crash_with_spare: pair(1.0, 5.0),
            many_starts: pair(6.0, 5.0),
            crowd: pair(8.0, 5.0),
            known: pair(1.0, 4.0),
            rss_kib: vec![40.0, 42.0, 41.0],
            run_rss_kib: vec![12.0],
            one_core: Some(one_core),
            sdks: None,
            record: Some(Record {
                list: vec![9.0],
                show: vec![3.0],
                stats: vec![20.0],
                open: vec![2.0],
                file_mib: 700.0,
                rows_per_second: vec![100_000.0],
            }),
        };
        let lines: Vec<String> =
            main_figures(&findings).iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let expected = [
            "engine_32b_vs_raw: 1.50",
            "engine_1mib_vs_raw: 2.50",
            "engine_1mib_socketpair_vs_raw: 1.90",
            "engine_64_inflight_vs_rmcp_default: 30.00",
            "engine_64_inflight_host_s_per_100k: 0.40",
            "engine_64_inflight_recorded_host_s_per_100k: 0.40",
            "engine_32b_vs_unrecorded: 1.50",
            "engine_64_inflight_vs_unrecorded: 0.75",
            "socket_32b_vs_two_raw_hops: 3.00",
            "cli_call_vs_curl: 0.75",
            "crash_to_answer_vs_spawn: 1.40",
            "crash_to_answer_with_spare_vs_spawn: 0.20",
            "spawn_50_vs_raw: 1.20",
            "spawn_500_vs_raw: 1.60",
            "start_500_cached: 0.25",
            "rss_per_idle_plugin_kib: 41.00",
            "rss_running_idle_vs_not_running_kib: 12.00",
            "engine_32b_one_core_vs_raw: 2.20",
            "engine_32b_unrecorded_one_core_vs_raw: 2.00",
            "million_calls_list_ms: 9.00",
            "million_calls_show_ms: 3.00",
            "million_calls_stats_ms: 20.0",
            "million_open_ms: 2.00",
            "million_file_mib: 700",
            "record_rows_per_second: 100000",
        ];
        assert_eq!(lines, expected);
    }
}
