//! Pages of the guide as programs: the files they show, the commands, and what is printed below each.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::sandbox::{Sandbox, plugd};
use crate::wait::{eventually, kill};

/// No command of a page takes so long, in seconds: the longest compiles a plugin and all that it needs.
const COMMAND_LIMIT: &str = "600";

/// What the sandbox is called on the pages.
const FOLDER: &str = "/home/ada/project";

/// What the folder for sockets is called there.
const RUNTIME_FOLDER: &str = "/run/user/1000";

/// What is said where a machine was slow to start a plugin begins so, and is on no page.
const ONLY_WHERE_SLOW: &str = "starting took ";

/// One page: its files and commands in their order.
pub struct Page {
    name: String,
    steps: Vec<Step>,
}

enum Step {
    /// A file is written, or written anew.
    File { name: String, text: String },
    /// A command is run.
    Command(Shown),
}

/// A command as the page shows it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shown {
    line: usize,
    text: String,
    output: Vec<String>,
    /// Whether a person sits at a terminal and types.
    on_a_terminal: bool,
}

/// A fenced block.
struct Block<'a> {
    line: usize,
    /// What stands behind the fence, such as `sh`.
    info: &'a str,
    /// The last line with something on it before.
    before: &'a str,
    lines: Vec<&'a str>,
}

impl Page {
    /// Reads a page, so that nothing on it that looks like a command is left out.
    ///
    /// A block below a line ``File `NAME`:`` is that file. A block of `sh` is a session: a command after
    /// each `$ `, lines that go on after `> `, and what is printed. `sh terminal` is one at a terminal:
    /// on a line that begins with `[ask] ` what stands behind the last `: ` is typed. A block of `json` is
    /// JSON. In any other block a line that begins with `$ ` or `plugd ` is an error.
    #[track_caller]
    pub fn read(path: &Path) -> Page {
        let text = fs::read_to_string(path).expect("the page is there");
        let name = path.file_name().expect("a page has a name").to_string_lossy().into_owned();
        let steps = blocks(&text).into_iter().flat_map(|block| steps(&name, &block)).collect();
        Page { name, steps }
    }

    /// How many commands it shows.
    pub fn commands(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, Step::Command(_))).count()
    }

    /// A file as the page shows it first.
    #[track_caller]
    pub fn file(&self, wanted: &str) -> &str {
        let mut files = self.steps.iter().filter_map(|step| match step {
            Step::File { name, text } => Some((name, text)),
            Step::Command(_) => None,
        });
        files.find(|(name, _)| *name == wanted).map(|(_, text)| text).expect("the page has the file")
    }

    /// Writes its files and runs its commands in a sandbox; panics with everything that differs from the page.
    #[track_caller]
    pub fn run(&self, sandbox: &Sandbox) {
        let mut session = Session { sandbox, code: 0, meanings: Meanings::default() };
        let mut differences = Vec::new();
        for step in &self.steps {
            match step {
                Step::File { name, text } => drop(sandbox.write(name, text)),
                Step::Command(shown) => {
                    let came = session.run(shown);
                    if !session.meanings.fit(&shown.output, &came) {
                        let (page, came) = (shown.output.join("\n"), came.join("\n"));
                        let place = format!("{}:{}: $ {}", self.name, shown.line, shown.text);
                        differences.push(format!("{place}\n--- the page\n{page}\n--- what came\n{came}\n"));
                    }
                }
            }
        }
        drop(session);
        if !differences.is_empty() {
            // What a page that failed has left would be nobody's.
            sandbox.processes_in("").into_iter().for_each(|pid| kill(pid, Signal::KILL));
            panic!("{}", differences.join("\n"));
        }
        eventually("no process is left", || sandbox.processes_in("").is_empty());
    }
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found: Vec<Block<'_>> = Vec::new();
    let (mut open, mut before) = (false, "");
    for (index, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), open) {
            (Some(info), false) => {
                found.push(Block { line: index + 1, info, before, lines: Vec::new() });
                open = true;
            }
            (Some(_), true) => (open, before) = (false, ""),
            (None, true) => found.last_mut().expect("one is open").lines.push(line),
            (None, false) if line.trim().is_empty() => {}
            (None, false) => before = line,
        }
    }
    found
}

#[track_caller]
fn steps(page: &str, block: &Block<'_>) -> Vec<Step> {
    let place = format!("{page}:{}", block.line);
    if let Some(name) = block.before.strip_prefix("File `") {
        let name = name.strip_suffix("`:").unwrap_or_else(|| panic!("{place}: no name of a file"));
        return vec![Step::File { name: name.to_owned(), text: format!("{}\n", block.lines.join("\n")) }];
    }
    match block.info {
        "sh" | "sh terminal" => session(&place, block).into_iter().map(Step::Command).collect(),
        "json" => {
            let parsed = serde_json::from_str::<serde_json::Value>(&block.lines.join("\n"));
            parsed.unwrap_or_else(|error| panic!("{place}: this is no JSON: {error}"));
            Vec::new()
        }
        _ => {
            let is_command = |line: &&str| line.starts_with("$ ") || line.starts_with("plugd ");
            let command = block.lines.iter().copied().find(is_command);
            assert!(command.is_none(), "{place}: this is not run: {command:?}");
            Vec::new()
        }
    }
}

#[track_caller]
fn session(place: &str, block: &Block<'_>) -> Vec<Shown> {
    let mut commands: Vec<Shown> = Vec::new();
    for (index, line) in block.lines.iter().enumerate() {
        match (line.strip_prefix("$ "), line.strip_prefix("> "), commands.last_mut()) {
            (Some(text), _, _) => commands.push(Shown {
                line: block.line + index + 1,
                text: text.to_owned(),
                output: Vec::new(),
                on_a_terminal: block.info == "sh terminal",
            }),
            (None, Some(more), Some(command)) if command.output.is_empty() => {
                command.text.push('\n');
                command.text.push_str(more);
            }
            (None, _, Some(command)) => command.output.push((*line).to_owned()),
            (None, _, None) => panic!("{place}: a session begins with a command: {line:?}"),
        }
    }
    assert!(!commands.is_empty(), "{place}: a session without a command");
    commands
}

/// A shell in a sandbox, with a daemon for as long as the page wants one.
struct Session<'a> {
    sandbox: &'a Sandbox,
    /// How the latest command ended.
    code: i32,
    meanings: Meanings,
}

impl Session<'_> {
    /// Runs a command and gives the lines that a person would see.
    fn run(&mut self, shown: &Shown) -> Vec<String> {
        let command = self.meanings.said(&shown.text);
        let mut run = self.command("timeout");
        run.args([COMMAND_LIMIT, if shown.on_a_terminal { "python3" } else { "sh" }]);
        let folder = self.sandbox.path().join(".terminal");
        if shown.on_a_terminal {
            let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/terminal.py");
            run.arg(program).arg(&folder).arg(typed(shown)).args(["sh", "-c", &command]);
        } else {
            run.args(["-c", &format!("exec 2>&1\n(exit {})\n{command}", self.code)]);
        }
        let ended = run.output().expect("a shell runs");
        self.code = ended.status.code().unwrap_or(-1);
        let mut came = String::from_utf8_lossy(&ended.stdout).into_owned();
        if shown.on_a_terminal {
            came = self.sandbox.read(".terminal/screen").replace("\r\n", "\n");
            came.push_str(&self.sandbox.read(".terminal/stdout"));
        }
        came.push_str(&String::from_utf8_lossy(&ended.stderr));
        let folder = self.sandbox.path().to_string_lossy().into_owned();
        let came = came.replace(&format!("{folder}/.run"), RUNTIME_FOLDER).replace(&folder, FOLDER);
        let seen = came.lines().filter(|line| !line.starts_with(ONLY_WHERE_SLOW));
        seen.map(|line| line.trim_end().to_owned()).collect()
    }

    /// A program in the sandbox, the one under test on its path and nothing of this user's configuration.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let ours = plugd().parent().expect("it lies in a folder").to_owned();
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", ours.display())).env("LANG", "C.UTF-8").env("NO_COLOR", "1");
        for (name, folder) in [("STATE_HOME", ".state"), ("CONFIG_HOME", ".config"), ("RUNTIME_DIR", ".run")]
        {
            command.env(format!("XDG_{name}"), self.sandbox.path().join(folder));
        }
        for name in ["PLUGD_CONFIG", "PLUGD_LOG", "PLUGD_AS", "TRACEPARENT"] {
            command.env_remove(name);
        }
        // What a page builds was fetched before, by the build of this repository.
        command.env("CARGO_NET_OFFLINE", "true").env_remove("CARGO_TARGET_DIR");
        command.current_dir(self.sandbox.path()).stdin(Stdio::null());
        command
    }
}

impl Drop for Session<'_> {
    /// Ends the daemon of a page that failed before it did so itself.
    fn drop(&mut self) {
        let _there_is_none_mostly = self.command("plugd").arg("shutdown").output();
    }
}

/// What is typed after which text, in the form that `terminal.py` takes.
fn typed(shown: &Shown) -> String {
    // What is to be agreed to is indented.
    let is_asked = |line: &&String| line.strip_prefix("[ask] ").is_some_and(|line| !line.starts_with(' '));
    let asked = shown.output.iter().filter(is_asked);
    let steps = asked.filter_map(|line| line.rsplit_once(": "));
    let steps: Vec<serde_json::Value> = steps
        .map(|(asked, typed)| serde_json::json!([format!("{asked}: "), 0, format!("{typed}\n")]))
        .collect();
    serde_json::Value::from(steps).to_string()
}

/// What stands for what: each id of a page for one that really came.
#[derive(Debug, Clone, Default)]
struct Meanings(HashMap<String, String>);

impl Meanings {
    /// A command with the ids that really came.
    fn said(&self, command: &str) -> String {
        self.0.iter().fold(command.to_owned(), |command, (page, real)| command.replace(page, real))
    }

    /// Whether the lines that came are those of the page; what its ids stand for is learnt.
    ///
    /// A line of `…` alone stands for any lines, within a line it stands for anything. An id stands for
    /// another one, and always for the same; a moment, a measured time and a digest for any other one.
    /// How many spaces there are between columns does not matter.
    fn fit(&mut self, page: &[String], came: &[String]) -> bool {
        let blank = |line: &String| line.trim().is_empty();
        let end = |lines: &[String]| lines.iter().rposition(|line| !blank(line)).map_or(0, |last| last + 1);
        let (page, came) = (&page[..end(page)], &came[..end(came)]);
        match self.lines_fit(page, came) {
            Some(meanings) => {
                *self = meanings;
                true
            }
            None => false,
        }
    }

    fn lines_fit(&self, page: &[String], came: &[String]) -> Option<Meanings> {
        let Some((first, rest)) = page.split_first() else { return came.is_empty().then(|| self.clone()) };
        if first.trim() == "…" {
            return (0..=came.len()).find_map(|skipped| self.lines_fit(rest, &came[skipped..]));
        }
        let (line, others) = came.split_first()?;
        let fit = |text: &str| text.trim_end().chars().collect::<Vec<char>>();
        self.clone().line_fits(&fit(first), &fit(line))?.lines_fit(rest, others)
    }

    fn line_fits(mut self, page: &[char], came: &[char]) -> Option<Meanings> {
        let Some(first) = page.first() else { return came.is_empty().then_some(self) };
        if *first == '…' {
            return (0..=came.len()).find_map(|skipped| self.clone().line_fits(&page[1..], &came[skipped..]));
        }
        if *first == ' ' {
            let spaces = |text: &[char]| text.iter().take_while(|character| **character == ' ').count();
            let (ours, theirs) = (spaces(page), spaces(came));
            return (theirs > 0).then(|| self.line_fits(&page[ours..], &came[theirs..])).flatten();
        }
        if let (Some(page_id), Some(real)) = (shaped(page, ID), shaped(came, ID)) {
            let known = self.0.entry(text(page_id)).or_insert_with(|| text(real));
            let same = *known == text(real);
            return same.then(|| self.line_fits(&page[ID.len()..], &came[ID.len()..])).flatten();
        }
        for form in [MOMENT, DIGEST] {
            if shaped(page, form).is_some() && shaped(came, form).is_some() {
                return self.line_fits(&page[form.len()..], &came[form.len()..]);
            }
        }
        if let (Some(ours), Some(theirs)) = (measured(page), measured(came)) {
            return self.line_fits(&page[ours..], &came[theirs..]);
        }
        (came.first() == Some(first)).then(|| self.line_fits(&page[1..], &came[1..])).flatten()
    }
}

/// An id of a call or a token; `x` is a digit of either kind.
const ID: &str = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

/// A moment, to the millisecond.
const MOMENT: &str = "dddd-dd-ddTdd:dd:dd.dddZ";

/// The beginning of a digest.
const DIGEST: &str = "sha256 xxxxxxxxxxxx";

fn text(characters: &[char]) -> String {
    characters.iter().collect()
}

/// The beginning of a text, if it has this form: `x` for a hexadecimal digit, `d` for a decimal one.
fn shaped<'a>(text: &'a [char], form: &str) -> Option<&'a [char]> {
    let part = text.get(..form.len())?;
    let fits = |(character, form): (&char, char)| match form {
        'x' => character.is_ascii_hexdigit(),
        'd' => character.is_ascii_digit(),
        other => *character == other,
    };
    part.iter().zip(form.chars()).all(fits).then_some(part)
}

/// The length of a measured time at the beginning of a text: `120 µs`, `1.2 ms`, `1.2 s`, `23h 59m 59s`.
fn measured(text: &[char]) -> Option<usize> {
    let digits = |from: usize| text[from..].iter().take_while(|character| character.is_ascii_digit()).count();
    let follows = |from: usize, wanted: &str| {
        let length = wanted.chars().count();
        let is_there =
            text.get(from..from + length).is_some_and(|part| part.iter().copied().eq(wanted.chars()));
        is_there.then_some(from + length)
    };
    let whole = digits(0);
    if whole == 0 {
        return None;
    }
    if let Some(end) = follows(whole, " µs") {
        return Some(end);
    }
    if let Some(at) = follows(whole, ".") {
        let end = at + digits(at);
        return (end > at).then(|| follows(end, " ms").or_else(|| follows(end, " s"))).flatten();
    }
    let minutes = follows(whole, "h ")?;
    let seconds = follows(minutes + digits(minutes), "m ")?;
    follows(seconds + digits(seconds), "s")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn check(page: &str, came: &str, fits: bool) {
        assert_eq!(Meanings::default().fit(&lines(page), &lines(came)), fits, "{page:?} and {came:?}");
    }

    #[test]
    fn a_page_is_what_came_but_for_what_differs_every_time() {
        check("sent", "sent\n", true);
        check("sent", "sent\nmore", false);
        check("a\n…\nz", "a\nb\nc\nz", true);
        check("a\n…", "a", true);
        check("a … z", "a b c z", true);
        check("a … z", "a b c", false);
        check("took 1.2 ms  x", "took 340.9 ms      x", true);
        check("took 12 µs", "took 1.2 s", true);
        check("within 500 ms", "within 600 ms", false);
        check("within 23h 59m 59s:", "within 23h 58m 1s:", true);
        check("at 2024-12-15T08:00:00.000Z", "at 2026-11-30T12:54:30.417Z", true);
        check("a, sha256 782d66badf2d", "a, sha256 17e567c12277", true);
        check("a, sha256 782d66badf2d", "a, sha256 17e567", false);
    }

    #[test]
    fn an_id_stands_for_the_same_one_everywhere() {
        let (one, other) = ("0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10", "01a22c85-72d3-74a7-b6bb-43b50fc8f9e6");
        let mut meanings = Meanings::default();
        assert!(meanings.fit(&lines(&format!("job {one}")), &lines(&format!("job {other}"))));
        assert_eq!(meanings.said(&format!("plugd result {one}/a")), format!("plugd result {other}/a"));
        assert!(!meanings.fit(&lines(one), &lines(one)), "it stands for another one");
    }

    #[test]
    fn a_page_is_read_as_files_and_sessions() {
        let text = "File `a.sh`:\n\n```sh\nplugd x\n```\n\nThen:\n\n```sh terminal\n$ a \\\n> b\n[ask] x: y\n\n$ c\n```\n";
        let all: Vec<Step> = blocks(text).iter().flat_map(|block| steps("p.md", block)).collect();
        let [Step::File { name, text }, Step::Command(first), Step::Command(second)] = all.as_slice() else {
            panic!("a file and two commands")
        };
        assert_eq!((name.as_str(), text.as_str()), ("a.sh", "plugd x\n"));
        assert_eq!((first.text.as_str(), second.line), ("a \\\nb", 14));
        assert_eq!(typed(first), r#"[["[ask] x: ",0,"y\n"]]"#);
    }

    #[test]
    #[should_panic(expected = "this is not run")]
    fn a_command_that_is_not_run_is_a_failure() {
        blocks("```\nplugd list\n```\n").iter().for_each(|block| drop(steps("p.md", block)));
    }

    #[test]
    #[should_panic(expected = "a session begins with a command")]
    fn a_command_without_its_sign_is_a_failure() {
        blocks("```sh\nplugd list\n```\n").iter().for_each(|block| drop(steps("p.md", block)));
    }
}
