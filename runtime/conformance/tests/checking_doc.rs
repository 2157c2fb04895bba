//! `docs/checking.md` says exactly what the scenarios say; `UPDATE_DOCS=1` rewrites it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use plugd_conformance::{GROUPS, Scenario, scenarios};

const HEAD: &str = "\
# Checking a plugin

<!-- Generated from `runtime/conformance/src/scenarios/`. To rewrite it:
     UPDATE_DOCS=1 cargo test -p plugd-conformance --test checking_doc -->

`plugd check ./plugin` tries a program, in any language and without any configuration: it starts it as plugd
would, in the same environment, folder and process group, and speaks with it line by line. Each thing that it
tries is a scenario with a name, which stays the same. A scenario passes, fails, warns (plugd copes with it, but
its author should know) or is skipped, with the reason. What fails is told with what was sent (`→`), what came
(`←`), what to do, and the part of [the protocol](protocol.md) that says so.

```
plugd check ./greet.py                          an executable, or a folder with a plugin.toml
plugd check ./greet.py -- --verbose             with an argument of its own
plugd check ./greet.py --call                   also calls what is declared read-only
plugd check ./greet.py --call=hello,bye         also calls these, whatever they declare
plugd check ./greet.py --only leaves_at_sigterm only these scenarios, and what they build on
plugd check ./greet.py --quick                  leaves out what takes long
plugd check ./greet.py --strict --junit out.xml warnings fail, too; a report for CI
```

- **Nothing is called without `--call`.** With it, what is declared `read_only` and not `long_running` is called
  with the examples, defaults and choices of its own `input_schema`, those within objects and lists included. Operations
  that are named after `--call=` are called whatever they declare, and as often as it takes: name none that must not run twice.
- What is about calls as such uses an operation that nobody declares, which runs nothing, until one of those that
  may be called has answered.
- `init` gets the `config` of its `plugin.toml`, and where there is none and its `config_schema` asks for some, one made of
  the examples there. Each process gets a `data_dir` of its own, which is removed in the end.
- Scenarios run beside each other, up to four, each with a process of its own or one that the scenario before has
  done with; what measures runs alone. No process is left, also where it is interrupted (exit code 130).
- **What counts.** Exit code 6 where a scenario fails, something that is declared cannot be called, or a call with its own
  examples fails; with `--strict` also where one warns. The report for people, `--output json` (its `ok`, in
  [this form](output.schema.json)), JUnit and the exit code say the same:

  | a call with its own examples ends with | |
  |---|---|
  | data | passes |
  | an error in its own words (codes 1, 3, 4 and others that are not below) | warns: an example should work wherever it is tried |
  | error 2: the handler raised what it did not mean to | fails |
  | -32601 although it is declared, -32800 although nobody cancelled it | fails |
  | no answer, a broken one, a crash, examples that do not fit their own `input_schema` | fails |
  | an error, once it asked a person or a plugin that is not here | is not counted |

- **What it requires** and is not given with it is no fault: that plugin is named, operations that call it are not tried, and
  the rest is. `plugd check ./a ./b` has both. A scenario that saw nothing of what it looks at is skipped, never passed.
- A plugin that is named by its name in the configuration is not tried so: it runs already, or may hold what no
  second process can have. Name its path.

What is measured depends on the machine and on what else it does: times are warnings, never failures, save those that
the protocol sets.
";

const TAIL: &str = "
## What is not tried

- Lines of the host that end in `\\r\\n`, blank lines, or a byte order mark: plugd writes none.
- A call before `init`, more calls at once than are declared, a call after `shutdown`: plugd makes none.
- That each bad argument is refused before the plugin hears of it is plugd's own duty: a test of plugd records all bytes that
  a plugin gets. Here `keeps_bad_arguments_away` shows what the schemas themselves let through.
- Whether an operation is `destructive`, or reaches beyond the machine (`open_world`): that cannot be seen from outside.
";

fn entry(out: &mut String, scenario: &Scenario) {
    let _ = write!(
        out,
        "\n### `{}`\n\nIt {}. {}\n\n- Says so: [{}](protocol.md#{})\n- Where it fails: {}\n",
        scenario.name, scenario.shows, scenario.does, scenario.anchor, scenario.anchor, scenario.fix
    );
    if scenario.calls() {
        out.push_str("- Only with `--call`\n");
    }
    if scenario.is_slow() {
        out.push_str("- Left out with `--quick`\n");
    }
}

#[test]
fn the_page_is_what_the_scenarios_say() {
    let mut expected = HEAD.to_owned();
    for (title, group) in GROUPS {
        let _ = write!(expected, "\n## {title}\n");
        group.iter().for_each(|scenario| entry(&mut expected, scenario));
    }
    expected.push_str(TAIL);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/checking.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).expect("docs/checking.md can be written");
    }
    let written = std::fs::read_to_string(&path).expect("docs/checking.md is there");
    assert!(
        written == expected,
        "docs/checking.md differs from the scenarios; rewrite it with\n  \
         UPDATE_DOCS=1 cargo test -p plugd-conformance --test checking_doc"
    );
}

#[test]
fn each_scenario_has_a_name_of_its_own_and_a_place_in_the_protocol() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol.md");
    let page = std::fs::read_to_string(page).expect("docs/protocol.md is there");
    let anchor = |line: &str| {
        let text = line.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|one| one.is_alphanumeric() || matches!(one, ' ' | '-' | '_'));
        kept.map(|one| if one == ' ' { '-' } else { one }).collect::<String>()
    };
    let anchors: BTreeSet<String> = page.lines().filter(|line| line.starts_with('#')).map(anchor).collect();
    let mut names = BTreeSet::new();
    for scenario in scenarios() {
        let name = scenario.name;
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        assert!(names.insert(name), "{name} twice");
        assert!(anchors.contains(scenario.anchor), "{name}: the protocol has no heading {}", scenario.anchor);
        assert!(scenario.does.ends_with('.') && !scenario.shows.ends_with('.'), "{name}");
    }
    assert!(names.len() > 45, "{}", names.len());
}
