//! The launcher as a program of its own; it lies beside `plugd`.

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    plugd_launcher::take_over();
    let asked: Vec<_> = std::env::args_os().skip(1).collect();
    if asked == [plugd_launcher::FORM_ASKED] {
        let told = std::io::stdout().write_all(plugd_launcher::form().as_bytes());
        return if told.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let _unheard = std::io::stderr()
        .write_all(b"plugd-launcher: plugd starts plugins through this program; it is of no use by itself\n");
    ExitCode::from(2)
}
