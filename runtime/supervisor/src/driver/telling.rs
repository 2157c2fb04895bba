//! Which of a program's last lines says why it ended.

/// So many lines of a list are told with the line that announces it.
const LISTED_MAX: usize = 3;

/// The words of a line, after what Python draws around the members of an exception group.
fn plain(line: &str) -> &str {
    line.trim_start().strip_prefix("| ").unwrap_or(line).trim_end()
}

/// The line that says why a program ended, of its last ones on stderr; `None` where it said nothing.
///
/// It is the last that names an exception or a panic, for a stack and remarks follow that; with what was
/// said after the stack. Where no line does, it is the last that is neither. The last line of all is often
/// useless: Node ends with its version, Go, Java and Ruby with a frame, Rust with a note.
pub fn telling(lines: &[String]) -> Option<String> {
    let lines: Vec<&str> = lines.iter().map(|line| plain(line)).filter(|line| !line.is_empty()).collect();
    let last = lines.last()?;
    let word = lines.iter().rposition(|line| !is_indented(line) && !is_remark(line));
    let Some(mark) = lines.iter().rposition(|line| is_mark(line)) else {
        return Some(word.map_or_else(|| last.trim().to_owned(), |word| with_its_list(&lines, word).0));
    };
    let (told, said_last) = match lines.get(mark + 1).filter(|_| goes_on(lines[mark])) {
        Some(next) => (format!("{} {}", lines[mark], next.trim_start()), mark + 1),
        None => with_its_list(&lines, mark),
    };
    match word.filter(|word| *word > said_last && !lines[word + 1..].iter().any(|line| is_indented(line))) {
        Some(word) => Some(format!("{told} … {}", lines[word])),
        None => Some(told),
    }
}

/// A line with those indented after it where it announces them by a colon, and the place of its last one.
fn with_its_list(lines: &[&str], at: usize) -> (String, usize) {
    let mut told = lines[at].trim().to_owned();
    if !told.ends_with(':') {
        return (told, at);
    }
    let listed =
        lines[at + 1..].iter().take(LISTED_MAX).take_while(|line| is_indented(line) && !is_frame(line));
    let mut last = at;
    for line in listed {
        told = format!("{told} {}", line.trim_start());
        last += 1;
    }
    (told, last)
}

/// A line of a stack as Node, Java, Python and Ruby write it.
fn is_frame(line: &str) -> bool {
    ["at ", "File \"", "from "].iter().any(|begin| line.trim_start().starts_with(begin))
}

/// Whether a line names an exception or a panic, in the form of one of many languages.
pub(super) fn is_mark(line: &str) -> bool {
    const BEGINS: [&str; 10] = [
        "panic: ",
        "fatal error: ",
        "Fatal error: ",
        "PHP Fatal error: ",
        "Exception in thread ",
        "Caused by: ",
        "Unhandled exception",
        "Uncaught ",
        "error: Uncaught ",
        "terminate called ",
    ];
    if is_indented(line) {
        return false;
    }
    // Ruby has it at the end: `main.rb:2:in 'f': no such pet (ArgumentError)`.
    let in_brackets = |line: &str| {
        line.split('(').skip(1).filter_map(|rest| Some(rest.split_once(')')?.0)).any(is_name_of_error)
    };
    BEGINS.iter().any(|begin| line.starts_with(begin))
        || line.contains(" panicked at ")
        || begins_with_error(line)
        || in_brackets(line)
}

/// `KeyError`, `KeyError: 'x'`, or `TypeError [ERR_INVALID_ARG_TYPE]: no` of Node.
fn begins_with_error(line: &str) -> bool {
    let head = line.split_once(": ").map_or(line, |(head, _)| head).trim_end_matches(':');
    let (name, rest) = head.split_once(' ').unwrap_or((head, "["));
    is_name_of_error(name) && rest.starts_with('[')
}

fn is_name_of_error(name: &str) -> bool {
    const ENDS: [&str; 4] = ["Error", "Exception", "ExceptionGroup", "Interrupt"];
    let of_a_name = |letter: char| letter.is_alphanumeric() || "_.$:/".contains(letter);
    ENDS.iter().any(|end| name.ends_with(end)) && name.chars().all(of_a_name)
}

/// Whether what a mark is about stands in the next line: Rust and C++ put it there.
pub(super) fn goes_on(mark: &str) -> bool {
    mark.starts_with("terminate called ") || (mark.contains(" panicked at ") && mark.ends_with(':'))
}

/// Whether a line belongs to a stack that a mark began, by what it is and what follows it.
pub(super) fn is_of_stack(line: &str, next: &str) -> bool {
    is_indented(line) || is_remark(line) || is_indented(next)
}

fn is_indented(line: &str) -> bool {
    line.starts_with([' ', '\t'])
}

/// What runtimes say after or around a stack.
fn is_remark(line: &str) -> bool {
    const BEGINS: [&str; 18] = [
        "created by ",
        "[signal ",
        "Node.js v",
        "Bun v",
        "(Use `node ",
        "Require stack:",
        "note: ",
        "stack backtrace:",
        "stack traceback:",
        "Stack trace:",
        "Stacktrace:",
        "Caused by:",
        "exit status ",
        "goroutine ",
        "BEGIN failed--",
        "Compilation failed in require",
        "Execution of ",
        "error: compilation failed",
    ];
    let counts_errors = || {
        let (count, what) = line.split_once(' ').unwrap_or_default();
        ["error", "errors"].contains(&what) && count.bytes().all(|byte| byte.is_ascii_digit())
    };
    let has_words = |line: &str| line.chars().any(char::is_alphanumeric);
    !has_words(line) || BEGINS.iter().any(|begin| line.starts_with(begin)) || counts_errors()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stderr: &str, expected: &str) {
        let lines: Vec<String> = stderr.lines().map(str::to_owned).collect();
        assert_eq!(telling(&lines).unwrap_or_default(), expected, "{stderr}");
    }

    #[test]
    fn node_says_it_above_the_stack_and_ends_with_its_version() {
        check(
            "/p/a.js:1\nfunction f() { throw new TypeError('no such pet') }\n               ^\n\n\
             TypeError: no such pet\n    at f (/p/a.js:1:22)\n    at node:internal/main:28:49 {\n  \
             code: 'E_X'\n}\n\nNode.js v20.20.2",
            "TypeError: no such pet",
        );
        check(
            "node:internal/modules/cjs/loader:1210\n  throw err;\n  ^\n\nError: Cannot find module './nope'\n\
             Require stack:\n- /p/c.js\n    at require (node:internal:182:18) {\n  code: 'M',\n  \
             requireStack: [ '/p/c.js' ]\n}\n\nNode.js v20.20.2",
            "Error: Cannot find module './nope'",
        );
        check(
            "/p/b.js:1\nthrow \"boom\"\n^\nboom\n(Use `node --trace-uncaught ...` to show where the exception \
             was thrown)\n\nNode.js v20.20.2",
            "boom",
        );
        check("TypeError [ERR_INVALID_ARG_TYPE]: no\n    at f\n", "TypeError [ERR_INVALID_ARG_TYPE]: no");
    }

    #[test]
    fn python_says_it_last_or_before_its_second_line() {
        let stack = "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    f()\n";
        check(
            &format!("{stack}ModuleNotFoundError: No module named 'nope'"),
            "ModuleNotFoundError: No module named 'nope'",
        );
        check(&format!("{stack}AssertionError"), "AssertionError");
        check(&format!("{stack}ValueError: first line\nsecond line"), "ValueError: first line … second line");
        check(
            &format!(
                "{stack}KeyError: 'x'\n\nThe above exception was the direct cause:\n\n{stack}RuntimeError: no such pet"
            ),
            "RuntimeError: no such pet",
        );
        check(
            "  + Exception Group Traceback (most recent call last):\n  |   File \"e.py\", line 1\n  \
             | ExceptionGroup: two (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n    \
             | ValueError: one\n    +------------------------------------",
            "ValueError: one",
        );
        // One that was logged and survived is told with what came later.
        check(&format!("{stack}KeyError: 'x'\ngoing on\nboom"), "KeyError: 'x' … boom");
        check("boom", "boom");
    }

    #[test]
    fn go_says_it_above_its_frames() {
        let frames = "main.f(...)\n\t/p/a.go:2\nmain.main()\n\t/p/a.go:3 +0x1a\n";
        check(
            &format!(
                "panic: runtime error: index out of range [3] with length 0\n\ngoroutine 1 [running]:\n{frames}exit status 2"
            ),
            "panic: runtime error: index out of range [3] with length 0",
        );
        check(
            &format!(
                "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [semacquire]:\n{frames}"
            ),
            "fatal error: all goroutines are asleep - deadlock!",
        );
        let thrown =
            "panic: in a goroutine\n\ngoroutine 18 [running]:\nmain.place.func1()\n\t/p/a.go:3 +0x25\n";
        let trailers = "created by main.place in goroutine 1\n\t/p/a.go:3 +0x1a\nexit status 2";
        check(&format!("{thrown}{trailers}"), "panic: in a goroutine");
        check(&format!("{thrown}created by main.place in goroutine 1"), "panic: in a goroutine");
        check(
            &format!(
                "panic: nil\n[signal SIGSEGV: segmentation violation code=0x1]\n\ngoroutine 1 [running]:\n{frames}"
            ),
            "panic: nil",
        );
        check("2026/11/30 20:44:13 no such pet", "2026/11/30 20:44:13 no such pet");
    }

    #[test]
    fn rust_and_cpp_say_it_in_two_lines() {
        let told = "thread 'main' (1314) panicked at a.rs:1:86: no such pet";
        let panic = "\nthread 'main' (1314) panicked at a.rs:1:86:\nno such pet\n";
        let note = "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace";
        check(&format!("{panic}{note}"), told);
        let stack = "stack backtrace:\n   0: __rustc::rust_begin_unwind\n             at /rustc/l.rs:689:5\n";
        check(&format!("{panic}{stack}note: Some details are omitted, run with"), told);
        check(
            "Error: Os { code: 2, kind: NotFound, message: \"No such file or directory\" }",
            "Error: Os { code: 2, kind: NotFound, message: \"No such file or directory\" }",
        );
        check("Error: no pets\n\nCaused by:\n    0: no file\n    1: not found", "Error: no pets");
        check(
            "terminate called after throwing an instance of 'std::runtime_error'\n  what():  no such pet",
            "terminate called after throwing an instance of 'std::runtime_error' what():  no such pet",
        );
    }

    #[test]
    fn ruby_java_and_perl_say_it_above_their_frames() {
        check(
            "a.rb:2:in `f': no such pet (RuntimeError)\n\tfrom a.rb:4:in `<main>'",
            "a.rb:2:in `f': no such pet (RuntimeError)",
        );
        check(
            "b.rb:1:in `<main>': undefined method `foo' for nil:NilClass (NoMethodError)\n\nnil.foo\n   ^^^^",
            "b.rb:1:in `<main>': undefined method `foo' for nil:NilClass (NoMethodError)",
        );
        check("c.rb:2:in `f': no pet (Boom)\n\tfrom c.rb:3:in `<main>'", "c.rb:2:in `f': no pet (Boom)");
        check(
            "Exception in thread \"main\" java.lang.IllegalStateException: no such pet\n\tat A.f(A.java:2)\n\
             Caused by: java.lang.NumberFormatException: For input string: \"x\"\n\tat A.f(A.java:2)\n\t... 1 more",
            "Caused by: java.lang.NumberFormatException: For input string: \"x\"",
        );
        check(
            "B.java:1: error: ';' expected\n    int x\n         ^\n1 error\nerror: compilation failed",
            "B.java:1: error: ';' expected",
        );
        check(
            "no such pet at a.pl line 1.\n\tmain::f() called at a.pl line 1",
            "no such pet at a.pl line 1.",
        );
        check(
            "Can't locate Nope/Such.pm in @INC at b.pl line 1.\nBEGIN failed--compilation aborted at b.pl line 1.",
            "Can't locate Nope/Such.pm in @INC at b.pl line 1.",
        );
    }

    #[test]
    fn a_list_is_told_with_the_line_that_announces_it() {
        check(
            "the plugin is declared wrongly:\n  a: there is no option \"readonly\"; did you mean \"readOnly\"?\n",
            "the plugin is declared wrongly: a: there is no option \"readonly\"; did you mean \"readOnly\"?",
        );
        check(
            "starting\nthe plugin is declared wrongly:\n  one\n  two\n  three\n  four",
            "the plugin is declared wrongly: one two three",
        );
        check("Error: cannot go on:\n    at f (/p/a.js:1:22)\n\nNode.js v20.20.2", "Error: cannot go on:");
        check("ConfigError: two values:\n  port: no number\n", "ConfigError: two values: port: no number");
    }

    #[test]
    fn shells_say_it_last_and_what_only_is_indented_is_better_than_nothing() {
        check("starting\na.sh: 2: nosuchprogram: not found", "a.sh: 2: nosuchprogram: not found");
        check("b.sh: line 2: NOPE: unbound variable", "b.sh: line 2: NOPE: unbound variable");
        check("  usage: pets\n\n", "usage: pets");
        check("exit status 2", "exit status 2");
        check("\n \n", "");
    }
}
