//! `plugd.toml` and `plugin.toml` as a person writes them: every key, once.

use std::collections::BTreeMap;

use plugd_protocol::PluginName;
use plugd_supervisor::driver::{Sandbox, Stdio};
use plugd_supervisor::machine::RestartMode;
use schemars::JsonSchema;
use toml::de::DeValue;

use super::callers::{CallerName, Globs};
use super::digest::ManifestDigest;
use super::form::{At, Found, Layer, Read, Reader, form};
use super::least::{CountFrom, OneAtMost, PeriodFrom, SizeFrom};
use super::value::{
    CallTime, Count, JsonTable, Need, Period, PeriodOrOff, Share, Size, SizeOrNone, Variables, Words,
};

form! {
    /// The configuration of plugd. Paths are relative to the folder of this file.
    ConfigFile {
        /// The program itself.
        daemon: DaemonFile,
        /// Folders whose plugins are taken up.
        scan: ScanFile,
        /// Limits and waits of every plugin that sets none of its own.
        limits: GlobalLimitsFile,
        /// Plugins by name.
        plugins: BTreeMap<PluginName, At<PluginFile>>,
        /// What is kept of calls, and for how long.
        record: RecordFile,
        /// Profiles of callers by name: what a call with `--as NAME` may use.
        callers: BTreeMap<CallerName, At<CallerFile>>,
    }
    refusing
        "dialogue": "this version of plugd does not know dialogue yet: remove the table",
        "roles": "this version of plugd does not know roles yet: remove the table",
}

form! {
    /// The program itself.
    DaemonFile {
        /// The control socket; by default in $XDG_RUNTIME_DIR/plugd.
        socket: String,
        /// Where what must outlive the daemon is kept; by default $XDG_STATE_HOME/plugd.
        state_dir: String,
        /// Whether changes of the files are applied by themselves.
        watch: bool,
        /// Whether the kernel ends a plugin whose daemon was killed.
        parent_death_signal: bool,
        /// Whether each run gets a cgroup of its own, where that is allowed.
        cgroups: bool,
    }
}

form! {
    /// What is kept of calls, and for how long.
    RecordFile {
        /// Whether calls are recorded at all; without it there are no keys, jobs, tokens and kept results.
        enabled: bool,
        /// For how long.
        keep_for: PeriodFrom<3_600_000>,
        /// How large the file may become.
        keep_size: SizeFrom<{ 4 << 20 }>,
    }
}

form! {
    /// What a caller may use.
    CallerFile {
        /// Operations it may use, as patterns such as "tickets.*"; everything where this is not said.
        allow: Globs,
        /// Operations it may not use, whatever is allowed.
        deny: Globs,
        /// The scopes it holds: an operation that declares one is only for those who hold it.
        scopes: Vec<String>,
    }
    refusing
        "uid": "the control socket takes its owner's connections alone: a profile is chosen by --as NAME",
        "token": "this version of plugd listens on no TCP port, so there is no token to tell a caller by",
}

form! {
    /// Folders whose plugins are taken up.
    ScanFile {
        /// The folders: in each, every folder with a plugin.toml and every executable file is a plugin.
        dirs: Vec<String>,
    }
}

form! {
    /// Limits and waits of every plugin that sets none of its own.
    GlobalLimitsFile {
        /// How deeply plugins may call one another.
        call_depth: Count,
        ; with limits: LimitsFile,
    }
}

form! {
    /// Limits and waits of a plugin.
    LimitsFile {
        /// How long `describe` may take.
        describe_timeout: PeriodFrom<1>,
        /// How long `init` may take without a sign of progress.
        init_timeout: PeriodFrom<1>,
        /// How long a start may take altogether while it reports progress.
        start_timeout_max: PeriodFrom<1>,
        /// How long a call may run; at most an hour.
        timeout: CallTime,
        /// How long a call may go without progress; false is for ever.
        stall_timeout: PeriodOrOff,
        /// How long a call may wait for a free lane.
        queue_timeout: PeriodFrom<1>,
        /// How many calls may wait.
        queue_length: Count,
        /// How long a cancelled call may hold a lane.
        cancel_grace: PeriodFrom<1>,
        /// How long a stop waits for calls in flight.
        drain_timeout: Period,
        /// How long the answer to `shutdown` may take.
        shutdown_timeout: Period,
        /// How long after stdin closed SIGTERM follows.
        term_timeout: Period,
        /// How long after SIGTERM SIGKILL follows.
        kill_timeout: Period,
        /// How long after SIGKILL a process that is still there is given up.
        unkillable_timeout: Period,
        /// The longest frame, its newline not counted.
        frame_limit: SizeFrom<1024>,
        /// How much of a plugin's log is kept.
        log_size: Size,
        /// How long an open question can be answered.
        token_ttl: PeriodFrom<1000>,
        /// How often an idle plugin that declares it is pinged.
        ping_interval: PeriodFrom<100>,
        /// How many pings in a row may go unanswered.
        ping_misses: Count,
        /// After how long without a call a lazy plugin stops; false is never.
        idle_timeout: PeriodOrOff,
    }
}

form! {
    /// One plugin.
    PluginFile {
        /// The program and its arguments.
        command: Words,
        /// The plugin's folder; by default that of this file.
        cwd: String,
        /// What is spoken over its pipes.
        protocol: Protocol,
        /// When it starts.
        start: Start,
        /// Whether it may be used at all.
        enabled: bool,
        /// Larger starts earlier within a level.
        priority: i32,
        /// Plugins it uses, with the versions that will do; added to what its manifest says.
        requires: BTreeMap<PluginName, Need>,
        /// Variables added to its environment; false unsets one.
        env: Variables,
        /// Variables of plugd's own environment that are passed on.
        pass_env: Vec<String>,
        /// How many calls it gets at once, at most what its manifest declares.
        concurrency: Count,
        /// What happens when its process ends.
        restart: Restart,
        /// How many processes are kept ready to take the place of the one that serves, should it fail: 0 or 1.
        spares: OneAtMost,
        /// What happens when its configuration or program changes.
        on_change: Change,
        /// What the kernel lets its process have at most.
        rlimits: RlimitsFile,
        /// What its process and everything it starts may have together.
        cgroup: CgroupFile,
        /// What its process is kept from; where that cannot be had, it does not start.
        sandbox: SandboxFile,
        /// What its stdin and stdout are.
        stdio: StdioFile,
        /// Whether any stray line on its stdout is a violation.
        strict: bool,
        /// Its own configuration, handed to `init`.
        config: JsonTable,
        /// What it would answer to `describe`, so that it need not run to be listed.
        manifest: JsonTable,
        /// SHA-256 of the one manifest that it may declare, as `plugd describe` shows it.
        manifest_sha256: ManifestDigest,
        /// What `plugd dev` needs to know; nothing else goes by it.
        dev: DevFile,
        ; with limits: LimitsFile,
    }
}

form! {
    /// What `plugd dev` needs to know of a plugin.
    DevFile {
        /// The program that makes the plugin's own, and its arguments; it runs in the plugin's folder.
        build: Words,
        /// Names of files and folders that are no sources: a change of them means nothing.
        ignore: Vec<String>,
    }
}

form! {
    /// What happens when a plugin's process ends, in numbers.
    RestartFile {
        /// Whether it is started again.
        policy: Policy,
        /// The first wait; each failure doubles it.
        backoff: PeriodFrom<1>,
        /// The longest wait.
        backoff_cap: PeriodFrom<1>,
        /// Failures within this time count together.
        window: PeriodFrom<1000>,
        /// More failures than this within the window and it is given up.
        max: u32,
        /// Ready for this long, it is restarted at once.
        stable_after: Period,
        /// Ready for this long, its failures are forgotten.
        reset_after: Period,
        /// How often a plugin that was given up is tried.
        probe_interval: PeriodFrom<100>,
        /// By what share a wait varies.
        jitter: Share,
    }
}

form! {
    /// What the kernel lets a process have at most (`man 2 setrlimit`).
    RlimitsFile {
        /// Descriptors open at once.
        open_files: CountFrom<8>,
        /// Processes and threads of the user.
        processes: Count,
        /// Bytes of address space.
        address_space: SizeFrom<{ 16 << 20 }>,
        /// Time on a processor, in whole seconds.
        cpu_time: PeriodFrom<1000>,
        /// Bytes in a file that it writes.
        file_size: Size,
        /// Bytes in a core dump; 0 where nothing is said.
        core_size: SizeOrNone,
    }
}

form! {
    /// What a process and everything it starts may have together; needs a delegated cgroup.
    CgroupFile {
        /// Bytes of memory.
        memory_max: Size,
        /// Processes and threads.
        pids_max: Count,
    }
}

/// A policy by name, or a table with its numbers.
#[derive(Clone, Default)]
pub(super) struct Restart(pub(super) RestartFile);

impl Read for Restart {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<Restart> {
        match value.get_ref() {
            DeValue::Table(_) => RestartFile::read(value, key, reader).map(Restart),
            _ => {
                let policy = Some(Policy::read(value, key, reader)?);
                Some(Restart(RestartFile { policy, ..RestartFile::default() }))
            }
        }
    }
}

impl Layer for Restart {
    fn over(self, base: Restart) -> Restart {
        Restart(self.0.over(base.0))
    }
}

impl JsonSchema for Restart {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Restart".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let policy = generator.subschema_for::<Policy>();
        let table = generator.subschema_for::<RestartFile>();
        schemars::json_schema!({"anyOf": [policy, table]})
    }
}

impl<T> Layer for At<T> {}

/// Declares a choice between names: how it is read, and how it is described to editors.
macro_rules! choice {
    ($(#[$meta:meta])* $vis:vis $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, JsonSchema)]
        $vis enum $name {
            $($(#[$variant_meta])* #[schemars(rename = $text)] $variant,)+
        }

        impl $name {
            /// Its name in the file.
            $vis fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }

        impl Read for $name {
            fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<$name> {
                match value.get_ref().as_str() {
                    $(Some($text) => Some($name::$variant),)+
                    _ => {
                        let names = [$(concat!("\"", $text, "\"")),+];
                        reader.expected(value, key, &names.join(" or "))
                    }
                }
            }
        }

        impl Layer for $name {}
    };
}

choice! {
    /// When a plugin starts.
    pub Start {
        /// With the first call.
        Lazy = "lazy",
        /// With plugd itself.
        Eager = "eager",
    }
}

choice! {
    /// Whether a plugin whose process ended is started again.
    pub(super) Policy {
        /// Unless plugd or an operator wanted it to end.
        OnFailure = "on-failure",
        /// Always, also after it was told to go idle.
        Always = "always",
        /// Never.
        Never = "never",
    }
}

choice! {
    /// What happens to a running plugin whose configuration or program changed.
    pub Change {
        /// A new run takes over.
        Replace = "replace",
        /// It goes on as it is, marked as needing a restart.
        Manual = "manual",
    }
}

choice! {
    /// What a plugin's process, and everything it starts, is kept from.
    pub(super) SandboxFile {
        /// Nothing that its user may do.
        None = "none",
        /// Changing files: it may read and execute them.
        ReadOnly = "read_only",
    }
}

choice! {
    /// What a plugin's stdin and stdout are.
    pub(super) StdioFile {
        /// A pipe each.
        Pipes = "pipes",
        /// A pair of connected sockets each: faster with large messages.
        Socketpair = "socketpair",
    }
}

impl From<StdioFile> for Stdio {
    fn from(stdio: StdioFile) -> Stdio {
        match stdio {
            StdioFile::Pipes => Stdio::Pipes,
            StdioFile::Socketpair => Stdio::Socketpair,
        }
    }
}

impl From<Stdio> for StdioFile {
    fn from(stdio: Stdio) -> StdioFile {
        match stdio {
            Stdio::Pipes => StdioFile::Pipes,
            Stdio::Socketpair => StdioFile::Socketpair,
        }
    }
}

impl From<SandboxFile> for Sandbox {
    fn from(sandbox: SandboxFile) -> Sandbox {
        match sandbox {
            SandboxFile::None => Sandbox::None,
            SandboxFile::ReadOnly => Sandbox::ReadOnly,
        }
    }
}

impl From<Sandbox> for SandboxFile {
    fn from(sandbox: Sandbox) -> SandboxFile {
        match sandbox {
            Sandbox::None => SandboxFile::None,
            Sandbox::ReadOnly => SandboxFile::ReadOnly,
        }
    }
}

impl From<Policy> for RestartMode {
    fn from(policy: Policy) -> RestartMode {
        match policy {
            Policy::OnFailure => RestartMode::OnFailure,
            Policy::Always => RestartMode::Always,
            Policy::Never => RestartMode::Never,
        }
    }
}

impl From<RestartMode> for Policy {
    fn from(mode: RestartMode) -> Policy {
        match mode {
            RestartMode::OnFailure => Policy::OnFailure,
            RestartMode::Always => Policy::Always,
            RestartMode::Never => Policy::Never,
        }
    }
}

/// What is spoken over a plugin's pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
pub(super) enum Protocol {
    /// The plugd plugin protocol.
    #[schemars(rename = "plugd")]
    Plugd,
}

impl Read for Protocol {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<Protocol> {
        match value.get_ref().as_str() {
            Some("plugd") => Some(Protocol::Plugd),
            Some("mcp") => {
                reader.wrong(value, key, "\"mcp\" is not supported yet by this version of plugd");
                None
            }
            _ => reader.expected(value, key, "\"plugd\""),
        }
    }
}

impl Layer for Protocol {}
