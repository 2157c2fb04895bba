//! What the machine is that the figures come from.

use std::process::Command;

/// Facts for the head of the page.
pub(crate) struct Facts {
    pub(crate) date: String,
    pub(crate) cores: usize,
    pub(crate) cpu: String,
    pub(crate) memory_gib: String,
    pub(crate) kernel: String,
    pub(crate) rustc: String,
}

/// What can be found out; `unknown` where it cannot.
pub(crate) fn of_this_machine() -> Facts {
    Facts {
        date: first_line_of("date", &["+%Y-%m-%d"]),
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        cpu: field_of("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
        memory_gib: field_of("/proc/meminfo", "MemTotal")
            .and_then(|text| text.trim_end_matches("kB").trim().parse::<f64>().ok())
            .map_or_else(unknown, |kib| format!("{:.1}", kib / 1024.0 / 1024.0)),
        kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .map_or_else(|_| unknown(), |text| text.trim().to_owned()),
        rustc: first_line_of("rustc", &["--version"]),
    }
}

pub(crate) fn unknown() -> String {
    "unknown".to_owned()
}

/// The first line that a program writes; `unknown` where it cannot be run.
pub(crate) fn first_line_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().map_or_else(unknown, str::to_owned)
}

fn field_of(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
