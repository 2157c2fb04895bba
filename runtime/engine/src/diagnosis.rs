//! What is wrong with one plugin, why, and what to do about it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use plugd_protocol::PluginName;
use plugd_protocol::control::{ClaimsChanged, Finding, PluginState, Severity, Source};
use plugd_protocol::manifest::Manifest;
use plugd_supervisor::driver::{ExitRecord, PluginView, command_line, is_program};

use crate::config::PluginConfig;
use crate::failure::{is, seconds};
use crate::listing::shown_state;

/// A chain of plugins that wait for one another is followed so far.
const CHAIN_SHOWN: usize = 20;

/// So many changed claims are named; `plugd status NAME` has them all.
const CLAIMS_SHOWN: usize = 5;

/// The kernel reads no more of a script's first line either.
const FIRST_LINE_MAX: u64 = 512;

/// One plugin and what is known of it.
pub(crate) struct Patient<'a> {
    pub(crate) plugin: &'a PluginConfig,
    /// How every plugin is: what it waits for may be among them.
    pub(crate) views: &'a BTreeMap<PluginName, PluginView>,
    pub(crate) manifest: Option<&'a Manifest>,
    /// What its files say is wrong.
    pub(crate) amiss: Vec<String>,
    /// What it claims otherwise than before under the same version.
    pub(crate) claims_changed: Option<ClaimsChanged>,
}

/// Everything that is to be said of a plugin; one finding at least.
pub(crate) fn diagnose(patient: &Patient<'_>) -> Vec<Finding> {
    let name = &patient.plugin.name;
    let state = patient.state();
    let mut findings = vec![patient.of_state(state)];
    // Where it does not run the reason is known, and it is mostly the same.
    if findings.iter().all(|finding| finding.severity == Severity::Ok) && patient.plugin.enabled {
        let amiss = patient.amiss();
        // Whether it can run is said once: that nothing runs it now is no good news beside that it cannot.
        findings.retain(|_| amiss.iter().all(|finding| finding.severity != Severity::Problem));
        findings.extend(amiss);
    }
    findings.extend(patient.unfinished());
    findings.extend(patient.misnamed());
    findings.extend(patient.other_claims());
    findings.extend(patient.oddities());
    for bad in patient.manifest.iter().flat_map(|manifest| &manifest.quarantined) {
        let message = format!("{name}.{} is not offered: {}", bad.name, bad.reason);
        findings.push(Finding {
            hint: Some("its author must mend what it declares".to_owned()),
            ..patient.finding(Severity::Warning, message)
        });
    }
    findings
}

impl Patient<'_> {
    fn view(&self) -> Option<&PluginView> {
        self.views.get(&self.plugin.name)
    }

    /// As it is shown.
    pub(crate) fn state(&self) -> PluginState {
        self.view().map_or(PluginState::Registered, shown_state)
    }

    fn finding(&self, severity: Severity, message: String) -> Finding {
        let plugin = Some(self.plugin.name.clone());
        Finding { severity, plugin, message, hint: None, details: Vec::new() }
    }

    /// What its state alone tells.
    fn of_state(&self, state: PluginState) -> Finding {
        let name = &self.plugin.name;
        let (severity, hint) = match state {
            PluginState::Starting if self.reason().is_some() => (
                Severity::Problem,
                Some(self.how_to_look("`plugd logs NAME` shows what it said when it failed")),
            ),
            PluginState::Registered
            | PluginState::Starting
            | PluginState::Ready
            | PluginState::Busy
            | PluginState::Idle
            | PluginState::Stopping => (Severity::Ok, None),
            PluginState::Disabled if !self.plugin.enabled => (Severity::Ok, Some(self.how_to_enable())),
            PluginState::Disabled => {
                (Severity::Problem, Some(format!("{}, then `plugd reload {name}`", self.how_to_mend())))
            }
            PluginState::Failed => {
                (Severity::Problem, Some(format!("{}, then `plugd start {name}`", self.how_to_mend())))
            }
            PluginState::Blocked => (Severity::Problem, Some(self.how_to_unblock())),
            PluginState::Backoff => (
                Severity::Problem,
                Some(self.how_to_look("`plugd logs NAME` shows what it said before it ended")),
            ),
            PluginState::Stopped => (Severity::Warning, Some(format!("`plugd start {name}` brings it back"))),
        };
        let reason = self.reason();
        let again = self.next_start().map(|time| format!("; it is tried again {time}")).unwrap_or_default();
        let mut finding =
            Finding { hint, ..self.finding(severity, format!("{name} {}{again}", told(state, reason))) };
        if severity != Severity::Ok {
            finding.details = self.chain();
            finding.details.extend(self.last_words(state));
        }
        finding
    }

    /// Why it is as it is; of one that starts, after what failure it is tried again.
    fn reason(&self) -> Option<&str> {
        self.view()?.reason.as_deref()
    }

    /// When it is tried again, where it is.
    fn next_start(&self) -> Option<String> {
        let next = self.view()?.view.next_start?;
        let left = next.saturating_duration_since(Instant::now()).as_secs();
        Some(if left == 0 { "now".to_owned() } else { format!("in {left} s") })
    }

    /// What it waits for, and that for what, down to what waits for nothing.
    fn chain(&self) -> Vec<String> {
        let mut chain = Vec::new();
        let mut seen = BTreeSet::from([&self.plugin.name]);
        let mut open: Vec<&PluginName> =
            self.view().into_iter().flat_map(|view| &view.view.waits_for).collect();
        while let Some(name) = open.pop().filter(|_| chain.len() < CHAIN_SHOWN) {
            if !seen.insert(name) {
                continue;
            }
            chain.push(match self.views.get(name) {
                Some(view) => {
                    open.extend(&view.view.waits_for);
                    let told = told(shown_state(view), view.reason.as_deref());
                    format!("it waits for {name}, which {told}")
                }
                None => format!("it waits for {name}, which is not configured"),
            });
        }
        chain
    }

    /// How its last run ended and what it said; of one that was stopped there is nothing to tell.
    fn last_words(&self, state: PluginState) -> Vec<String> {
        let last = self.view().and_then(|view| view.exits.last());
        let gave_up = matches!(
            state,
            PluginState::Disabled | PluginState::Failed | PluginState::Backoff | PluginState::Starting
        );
        last.filter(|exit| gave_up || !exit.by_plugd).map(words_of).unwrap_or_default()
    }

    /// What its files say is wrong, where it does not know yet or runs on as it was.
    fn amiss(&self) -> Vec<Finding> {
        let name = &self.plugin.name;
        let view = self.view();
        let required = view.and_then(|view| view.view.restart_required.as_ref());
        let runs = view.is_some_and(|view| view.view.accepts_calls);
        let finding = |problem: &String| {
            let (severity, what) = match runs {
                true => (Severity::Warning, "would not start again"),
                false => (Severity::Problem, "cannot run"),
            };
            Finding {
                hint: Some(format!("mend it, then `plugd reload {name}`")),
                ..self.finding(severity, format!("{name} {what}: {problem}"))
            }
        };
        // What kept a change from being taken up is said with that.
        let told = |problem: &&String| required.is_some_and(|told| told.reason.contains(problem.as_str()));
        self.amiss.iter().filter(|problem| !told(problem)).map(finding).collect()
    }

    /// What was configured and is not in use yet.
    fn unfinished(&self) -> Option<Finding> {
        let name = &self.plugin.name;
        let view = self.view()?;
        let required = view.view.restart_required.as_ref()?;
        let goes_on = match view.view.pid {
            Some(_) => "goes on as it was",
            None => "would start as it was before",
        };
        let changed = match required.changed.is_empty() {
            true => String::new(),
            false => format!(" although this changed: {}", required.changed.join(", ")),
        };
        let message = format!("{name} {goes_on}{changed}; {}", required.reason);
        let hint = match required.is_manual() {
            true => format!("`plugd restart {name}` applies what is configured"),
            false => format!("mend it, then `plugd reload {name}`"),
        };
        // The run that did not take over is a later one than the one that serves.
        let failed = view.exits.iter().rev().find(|exit| exit.generation > view.view.generation);
        let details = failed.filter(|_| !required.is_manual()).map(words_of).unwrap_or_default();
        Some(Finding { hint: Some(hint), details, ..self.finding(Severity::Warning, message) })
    }

    /// That its manifest calls it otherwise than it is called here.
    fn misnamed(&self) -> Option<Finding> {
        let name = &self.plugin.name;
        let own = self.manifest.map(|manifest| &manifest.name).filter(|own| *own != name.as_str())?;
        let message = format!("{name} calls itself {own:?} in its manifest; the configured name counts");
        Some(Finding {
            hint: Some("let both be the same, unless it is meant so".to_owned()),
            ..self.finding(Severity::Warning, message)
        })
    }

    /// That it claims something else than before under one version.
    fn other_claims(&self) -> Option<Finding> {
        let name = &self.plugin.name;
        let changed = self.claims_changed.as_ref()?;
        let message =
            format!("{name} declares something else than before under the same version {}", changed.version);
        Some(Finding {
            hint: Some(format!(
                "look at what changed: `plugd reload {name}` agrees to it; its author should have raised the version"
            )),
            details: vec![changed.in_words(CLAIMS_SHOWN)],
            ..self.finding(Severity::Warning, message)
        })
    }

    /// What works and should not be so.
    fn oddities(&self) -> Vec<Finding> {
        let name = &self.plugin.name;
        let Some(view) = self.view() else { return Vec::new() };
        let mut findings = Vec::new();
        let up = matches!(self.state(), PluginState::Ready | PluginState::Busy | PluginState::Idle);
        if up && view.view.restarts > 0 {
            let lost = view.exits.iter().rev().find(|exit| exit.unasked);
            let times = if view.view.restarts == 1 { "once" } else { "several times" };
            findings.push(Finding {
                hint: Some(self.how_to_look("`plugd logs NAME` shows what it said before it ended")),
                details: lost.map(words_of).unwrap_or_default(),
                ..self.finding(Severity::Warning, format!("{name} ended unasked {times} lately"))
            });
        }
        if view.stray_lines > 0 {
            let message = format!(
                "{name} wrote {} of text on stdout, where only messages belong",
                counted(view.stray_lines, "line")
            );
            findings.push(Finding {
                hint: Some(format!("what it prints belongs on stderr; `plugd logs {name}` shows the lines")),
                ..self.finding(Severity::Warning, message)
            });
        }
        if view.unmatched_answers > 0 {
            let message =
                format!("{name} gave {} that nobody waited for", counted(view.unmatched_answers, "answer"));
            findings.push(Finding {
                hint: Some("an id goes back as it came, and once".to_owned()),
                ..self.finding(Severity::Warning, message)
            });
        }
        if view.view.state == PluginState::Starting && view.view.waits_for.is_empty() {
            let waited = view.view.since.elapsed();
            if waited > self.plugin.limits.describe_timeout {
                let message = format!("{name} has been starting for {}", seconds(waited));
                findings.push(Finding {
                    hint: Some(format!("`plugd logs {name}` shows how far it is")),
                    ..self.finding(Severity::Warning, message)
                });
            }
        }
        findings
    }

    fn how_to_enable(&self) -> String {
        let name = &self.plugin.name;
        if self.plugin.enabled_as_written {
            return format!("`plugd enable {name}` allows it again");
        }
        match &self.plugin.source {
            Source::Config { file } | Source::Added { file } => {
                format!("`plugd enable {name}`, or enabled = true in {file}, allows it")
            }
            _ => format!("`plugd enable {name}` allows it"),
        }
    }

    /// What must be done about its program, as far as that can be seen.
    fn how_to_mend(&self) -> String {
        if !self.plugin.cwd.is_dir() {
            return format!("make the folder {}, or mend `cwd`", self.plugin.cwd.display());
        }
        let program = self.plugin.program.display();
        let Ok(metadata) = self.plugin.program.metadata() else {
            return match self.plugin.dev.build.as_slice() {
                [] => format!("install {program}, or mend `command`"),
                build => format!("`{}` in {}", command_line(build), self.plugin.cwd.display()),
            };
        };
        if metadata.is_file() && metadata.permissions().mode() & 0o111 == 0 {
            return match is_program(&self.plugin.program) {
                true => format!("`chmod +x {program}`"),
                false => format!("name the interpreter of {program} before it in `command`"),
            };
        }
        if let Some(interpreter) = missing_interpreter(&self.plugin.program) {
            return format!("install {interpreter}, or mend the first line of {program}");
        }
        match self.view().is_some_and(|view| !view.exits.is_empty()) {
            true => format!("mend the reason ({})", self.how_to_look("`plugd logs NAME` has more")),
            false => "mend the reason".to_owned(),
        }
    }

    /// Where more is to be seen of how it failed: in the log, if that has anything.
    fn how_to_look(&self, in_the_log: &str) -> String {
        let last = self.view().and_then(|view| view.exits.last());
        if last.is_none_or(|exit| !exit.silent) {
            return in_the_log.replace("NAME", self.plugin.name.as_str());
        }
        let mut words = vec![self.plugin.program.display().to_string()];
        let arguments = self.plugin.command.get(1..).unwrap_or_default();
        let place = match arguments {
            [] => String::new(),
            // They may name files of the folder that it runs in.
            arguments => {
                words.push("--".to_owned());
                words.extend_from_slice(arguments);
                format!(" in {}", self.plugin.cwd.display())
            }
        };
        format!("it said nothing: `plugd check {}`{place} tries it", command_line(&words))
    }

    fn how_to_unblock(&self) -> String {
        let waits_for = self.view().map(|view| view.view.waits_for.as_slice()).unwrap_or_default();
        match waits_for.first() {
            Some(first) if self.views.contains_key(first) => {
                format!("it starts by itself when that is up: `plugd doctor {first}` says what to do there")
            }
            Some(first) => format!("configure {first}, or mend the name; it starts by itself then"),
            None => "it starts by itself when that is up; `plugd graph` shows who requires whom".to_owned(),
        }
    }
}

/// How a run ended, unless that was plugd's doing, and its last words.
fn words_of(exit: &ExitRecord) -> Vec<String> {
    let report = exit.report();
    let oom = if report.oom { ", out of memory" } else { "" };
    let ended = (!exit.by_plugd).then(|| format!("run {} ended: {}{oom}", report.generation, report.text));
    let mut lines: Vec<String> = ended.into_iter().collect();
    lines.extend(report.stderr_tail.iter().map(|line| format!("stderr: {line}")));
    lines
}

/// A state and its reason as a sentence goes on.
fn told(state: PluginState, reason: Option<&str>) -> String {
    let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    match state {
        PluginState::Failed => format!("has failed{because}"),
        PluginState::Backoff => format!("is in backoff{because}"),
        PluginState::Registered
        | PluginState::Starting
        | PluginState::Ready
        | PluginState::Busy
        | PluginState::Idle
        | PluginState::Blocked
        | PluginState::Disabled
        | PluginState::Stopping
        | PluginState::Stopped => is(state, reason),
    }
}

/// The interpreter that a script's first line names, where there is none.
fn missing_interpreter(program: &Path) -> Option<String> {
    let mut line = Vec::new();
    BufReader::new(File::open(program).ok()?.take(FIRST_LINE_MAX)).read_until(b'\n', &mut line).ok()?;
    let line = String::from_utf8(line).ok()?;
    let interpreter = line.strip_prefix("#!")?.split_whitespace().next()?;
    (!Path::new(interpreter).exists()).then(|| interpreter.to_owned())
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
