//! What decides how many instructions the same work takes.

use std::fmt;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// Where one of them differs, instructions do not compare.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Setting {
    /// The compiler and its version.
    pub(crate) compiler: String,
    /// The C library's version: its copies, its allocator and its loader are counted too.
    pub(crate) libc: String,
    /// The processor's kind, and the vector instructions by which libraries choose their code.
    pub(crate) machine: String,
    /// What counts: it has a say in which vector instructions there are.
    pub(crate) valgrind: String,
}

impl Setting {
    /// This machine's; `unknown` where it cannot be told.
    pub(crate) fn of_this_machine(valgrind: String) -> Setting {
        let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let wide =
            flags.lines().any(|line| line.starts_with("flags") && line.split(' ').any(|flag| flag == "avx2"));
        let libc = first_line_of("ldd", &["--version"]);
        Setting {
            compiler: first_line_of("rustc", &["--version"]),
            // Between the name and the number stands the distribution's own, which changes nothing.
            libc: libc.rsplit(' ').next().unwrap_or("unknown").to_owned(),
            machine: format!("{}{}", std::env::consts::ARCH, if wide { " avx2" } else { "" }),
            valgrind,
        }
    }

    #[cfg(test)]
    pub(crate) fn named(compiler: &str) -> Setting {
        let [libc, machine, valgrind] = ["2.36", "x86_64 avx2", "valgrind-3.24.0"].map(str::to_owned);
        Setting { compiler: compiler.to_owned(), libc, machine, valgrind }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, libc {}, {}, {}", self.compiler, self.libc, self.machine, self.valgrind)
    }
}

/// The first line that a program writes; `unknown` where it cannot be run.
fn first_line_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").trim().to_owned()
}
