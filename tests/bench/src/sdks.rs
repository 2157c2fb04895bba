//! What a handler costs with each language's SDK, against a bare loop and an MCP server in that language.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::contender::{Case, Contender, Heat, Samples, take_turns};
use crate::dialogue::{Dialogue, Speech};
use crate::facts::{first_line_of, unknown};
use crate::interrupt;
use crate::one_core::Pinned;
use crate::suite::alone;

/// The payloads, in bytes.
pub(crate) const PAYLOADS: [usize; 2] = [32, 1024];

/// How long a turn takes: short, so that a machine that changes speed changes it for neighbours alike.
pub(crate) const SLICE: Duration = Duration::from_millis(30);

/// Turns of each program with each payload.
pub(crate) const REPETITIONS: usize = 25;

/// A language with an SDK, and the names of its contenders.
pub(crate) struct Language {
    pub(crate) name: &'static str,
    pub(crate) bare_loop: &'static str,
    pub(crate) sdk: &'static str,
    /// None where people have no server of MCP to compare with.
    pub(crate) peers: &'static [Peer],
}

/// What people write the same thing with today.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) figure: &'static str,
    speech: Speech,
}

/// All languages with an SDK, in the order of their turns.
pub(crate) const LANGUAGES: [Language; 4] = [
    Language {
        name: "python",
        bare_loop: "Python, bare loop",
        sdk: "Python, SDK",
        peers: &[
            Peer { name: "Python, FastMCP", figure: "sdk_python_vs_fastmcp", speech: Speech::Mcp },
            Peer {
                name: "Python, FastMCP, 2026-07-28",
                figure: "sdk_python_vs_fastmcp_2026",
                speech: Speech::Mcp2026,
            },
        ],
    },
    Language {
        name: "node",
        bare_loop: "Node, bare loop",
        sdk: "Node, SDK",
        peers: &[
            Peer { name: "Node, MCP SDK", figure: "sdk_node_vs_mcp", speech: Speech::Mcp },
            Peer {
                name: "Node, MCP SDK, 2026-07-28",
                figure: "sdk_node_vs_mcp_2026",
                speech: Speech::Mcp2026,
            },
        ],
    },
    Language { name: "go", bare_loop: "Go, bare loop", sdk: "Go, SDK", peers: &[] },
    Language { name: "rust", bare_loop: "Rust, bare loop", sdk: "Rust, SDK", peers: &[] },
];

/// The loop of Node that reads and writes without its event loop.
pub(crate) const NODE_BLOCKING: &str = "Node, blocking loop";

/// What was measured.
pub(crate) struct Sdks {
    pub(crate) samples: Samples,
    /// Who could not take part, and why.
    pub(crate) absent: Vec<(&'static str, String)>,
    /// Languages and peers with their versions, of those that are there.
    pub(crate) versions: Vec<String>,
}

/// A program that takes part.
struct Entrant {
    name: &'static str,
    speech: Speech,
    command: Command,
    /// What to do where it cannot be started.
    advice: &'static str,
}

/// Lets the programs of all languages take turns; they have ended when it returns.
///
/// What cannot be started is left out and said loudly.
pub(crate) fn measure() -> io::Result<Sdks> {
    let places = Places::find()?;
    let _pinned = Pinned::to_one_core()?;
    let mut contenders: Vec<Box<dyn Contender>> = Vec::new();
    let mut absent = Vec::new();
    for mut entrant in places.entrants() {
        crate::progress(&format!("calls: {} starts", entrant.name));
        interrupt::check()?;
        let started = Dialogue::start(entrant.name, entrant.speech, &mut entrant.command);
        match started {
            Ok(dialogue) => contenders.push(Box::new(dialogue)),
            Err(error) => {
                let why = format!("{error}: {}", entrant.advice);
                crate::progress(&format!("NOT MEASURED: {}: {why}", entrant.name));
                absent.push((entrant.name, why));
            }
        }
    }
    let names: Vec<&'static str> = contenders.iter().map(|contender| contender.name()).collect();
    let heats: Vec<Heat> =
        PAYLOADS.map(alone).into_iter().map(|case: Case| Heat { case, contenders: names.clone() }).collect();
    let samples = take_turns(&mut contenders, &heats, REPETITIONS, SLICE)?;
    Ok(Sdks { samples, absent, versions: places.versions() })
}

/// Where the programs of other languages lie.
struct Places {
    /// The sources, in this folder of the bench.
    programs: PathBuf,
    python_sdk: PathBuf,
    /// What was built.
    built: PathBuf,
    /// What `make bench` installs with pip and npm.
    peers: PathBuf,
}

impl Places {
    fn find() -> io::Result<Places> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let this = std::env::current_exe()?;
        let built = this.parent().unwrap_or(Path::new("/")).to_owned();
        let peers = built.with_file_name("bench-peers");
        let python_sdk = here.join("../../plugin-sdk/python/src");
        Ok(Places { programs: here.join("programs"), python_sdk, built, peers })
    }

    fn venv_python(&self) -> PathBuf {
        self.peers.join("python/bin/python")
    }

    fn node_peer(&self) -> PathBuf {
        self.peers.join("node")
    }

    fn entrants(&self) -> Vec<Entrant> {
        let with_script = |program: &Path, script: PathBuf| {
            let mut command = Command::new(program);
            command.arg(script);
            command
        };
        let python = |script| with_script(Path::new("python3"), self.programs.join("python").join(script));
        let node = |script| with_script(Path::new("node"), self.programs.join("node").join(script));
        let built = |name| Command::new(self.built.join(name));
        let mut python_sdk = python("sdk.py");
        python_sdk.env("PYTHONPATH", &self.python_sdk);
        let python_peer = || with_script(&self.venv_python(), self.programs.join("python/peer.py"));
        let node_peer = || with_script(Path::new("node"), self.node_peer().join("peer.js"));

        let [py, js, go, rs] = &LANGUAGES;
        let (get_python, get_node) = ("python3 is needed", "Node is needed: install nodejs");
        let get_go = "`make bench` builds it where Go is installed";
        let get_rust = "`make bench` builds it";
        let entrant = |name, speech, command, advice| Entrant { name, speech, command, advice };
        let peers = |language: &Language, command: &dyn Fn() -> Command| -> Vec<Entrant> {
            let advice = "`make bench` installs it, with pip or npm";
            let peers = language.peers.iter();
            peers.map(|peer| entrant(peer.name, peer.speech, command(), advice)).collect()
        };
        let mut all = vec![
            entrant(py.bare_loop, Speech::Loop, python("loop.py"), get_python),
            entrant(py.sdk, Speech::Plugin, python_sdk, get_python),
        ];
        all.extend(peers(py, &python_peer));
        all.extend([
            entrant(js.bare_loop, Speech::Loop, node("loop.js"), get_node),
            entrant(NODE_BLOCKING, Speech::Loop, node("blocking.js"), get_node),
            entrant(js.sdk, Speech::Plugin, node("sdk.js"), get_node),
        ]);
        all.extend(peers(js, &node_peer));
        all.extend([
            entrant(go.bare_loop, Speech::Loop, built("go_loop"), get_go),
            entrant(go.sdk, Speech::Plugin, built("go_sdk"), get_go),
            entrant(rs.bare_loop, Speech::Loop, built("rust_loop"), get_rust),
            entrant(rs.sdk, Speech::Plugin, built("rust_sdk"), get_rust),
        ]);
        all
    }

    fn versions(&self) -> Vec<String> {
        let of_fastmcp =
            "from importlib.metadata import version as v; print('FastMCP', v('fastmcp'), 'on mcp', v('mcp'))";
        let package = self.node_peer().join("node_modules/@modelcontextprotocol/server/package.json");
        let of_node_mcp = std::fs::read_to_string(package)
            .ok()
            .and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok())
            .and_then(|package| Some(package.get("version")?.as_str()?.to_owned()))
            .unwrap_or_else(unknown);
        let versions = [
            first_line_of("python3", &["--version"]),
            first_line_of(&self.venv_python().display().to_string(), &["-c", of_fastmcp]),
            format!("Node {}", first_line_of("node", &["--version"])),
            format!("@modelcontextprotocol/server {of_node_mcp}"),
            first_line_of("go", &["version"]),
            first_line_of("rustc", &["--version"]),
        ];
        versions.into_iter().filter(|version| !version.ends_with(&unknown())).collect()
    }
}
