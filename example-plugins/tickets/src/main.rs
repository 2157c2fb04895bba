//! tickets: where a ticket is in its approval. An example plugin with state and named failures.

mod backend;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use plugd_sdk::{Context, Error, InitContext, NextAction, Plugin, Reply, operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use backend::{Backend, Step};

/// Said where the ticket system does not say which step a ticket is at.
const UNKNOWN_STEP: &str = "未知";

/// Where the tickets come from.
#[derive(Deserialize, JsonSchema)]
struct Config {
    /// The ticket file, relative to the plugin's folder.
    #[serde(default = "shipped_file")]
    file: PathBuf,
    /// Seconds to wait for the ticket system.
    #[serde(default = "five_seconds")]
    #[schemars(range(min = 0.001, max = 3600))]
    request_timeout: f64,
}

fn shipped_file() -> PathBuf {
    PathBuf::from("tickets.json")
}

fn five_seconds() -> f64 {
    5.0
}

fn open(config: Config, _: &InitContext) -> Result<Backend, Error> {
    let timeout = Duration::try_from_secs_f64(config.request_timeout)?;
    Backend::open(&config.file, timeout)
}

/// How far a ticket is.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct TicketStatus {
    /// The ticket's number.
    ticket_id: String,
    /// Where it is, if the ticket system knows.
    current_step: Option<String>,
    /// Its way, from first to last.
    steps: Vec<Step>,
    /// What comes after that.
    next_step: Option<String>,
    /// When it last moved.
    updated_at: String,
}

/// Looks up how far a ticket is in its approval. Gives the current step, every step with its state
/// and time, the step that comes next, and when the ticket last moved.
#[operation(
    title = "Ticket status",
    when_to_use = "Someone asks how far a ticket is, who has to approve it or what comes next.",
    when_not_to_use = "The number is not known: ask for it, or use list_open to see what there is.",
    examples(
        "where is ticket TK-20241215-001",
        "has my request been approved yet",
        "我的单子到哪了",
        "帮我查一下 TK-20241215-001 的审批进度"
    ),
    category = "tickets",
    timeout_ms = 5_000,
    read_only,
    idempotent
)]
fn query_status(
    /// The ticket's number: TK-, the date as eight digits, and three digits. Given as digits only,
    /// such as 20241215001, it is written TK-20241215-001; a shorter number is not enough.
    #[arg(pattern = r"^TK-\d{8}-\d{3}$", example = "TK-20241215-001")]
    ticket_id: String,
    backend: &Backend,
    cx: &Context,
) -> Result<Reply<TicketStatus>, Error> {
    cx.progress(0, 1, "asking the ticket system");
    let ticket = backend.ticket(&ticket_id, cx)?;
    let names: Vec<&str> = ticket.steps.iter().map(|step| step.name.as_str()).collect();
    let current = ticket.current_step.as_deref().unwrap_or(UNKNOWN_STEP);
    let summary = format!("当前进度：{current}。详细节点：{}", names.join(" > "));
    let status = TicketStatus {
        ticket_id,
        current_step: ticket.current_step.clone(),
        steps: ticket.steps.clone(),
        next_step: ticket.next_step().map(str::to_owned),
        updated_at: ticket.updated_at.clone(),
    };
    Ok(Reply::new(status).summary(summary))
}

/// The tickets under way.
#[derive(Serialize, JsonSchema)]
struct OpenTickets {
    /// Each with where it is.
    tickets: Vec<OpenTicket>,
}

/// A ticket under way.
#[derive(Serialize, JsonSchema)]
struct OpenTicket {
    /// The ticket's number.
    ticket_id: String,
    /// Where it is, if the ticket system knows.
    current_step: Option<String>,
    /// When it last moved.
    updated_at: String,
}

/// Lists the tickets whose approval is under way, each with the step it is at. Finished and archived
/// ones are left out.
#[operation(
    title = "Open tickets",
    when_to_use = "Someone asks which tickets are open, or does not know a ticket's number.",
    when_not_to_use = "The number is known: use query_status, which says more.",
    examples("which tickets are open", "what is waiting for approval", "还有哪些工单没审批完"),
    category = "tickets",
    timeout_ms = 5_000,
    read_only,
    idempotent
)]
fn list_open(backend: &Backend) -> Reply<OpenTickets> {
    let open = backend.tickets().filter(|(_, ticket)| ticket.is_open());
    let tickets: Vec<OpenTicket> = open
        .map(|(id, ticket)| OpenTicket {
            ticket_id: id.to_owned(),
            current_step: ticket.current_step.clone(),
            updated_at: ticket.updated_at.clone(),
        })
        .collect();
    let ids: Vec<&str> = tickets.iter().map(|ticket| ticket.ticket_id.as_str()).collect();
    let summary = format!("{} open tickets: {}", ids.len(), ids.join(", "));
    let next = ids.first().map(|id| NextAction {
        operation: Some("tickets.query_status".to_owned()),
        description: Some("see how far one of them is".to_owned()),
        arguments: Some(json!({"ticket_id": id})),
    });
    let reply = Reply::new(OpenTickets { tickets }).summary(summary);
    next.into_iter().fold(reply, Reply::next_action)
}

fn plugin() -> Plugin<Backend> {
    Plugin::new("tickets", env!("CARGO_PKG_VERSION"))
        .description("Where tickets are in their approval, from a ticket file.")
        .concurrency(4)
        .stops_when_cancelled()
        .init(open)
        .operation(query_status::operation())
        .operation(list_open::operation())
}

fn main() -> ExitCode {
    plugin().serve()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plugd_sdk::testing::Host;

    fn shipped() -> String {
        format!("{}/tickets.json", env!("CARGO_MANIFEST_DIR"))
    }

    fn backend() -> Backend {
        let config = Config { file: shipped().into(), request_timeout: 0.01 };
        open(config, &InitContext::for_test("")).expect("the shipped file is readable")
    }

    fn query(id: &str) -> Result<Reply<TicketStatus>, Error> {
        query_status(id.to_owned(), &backend(), &Context::for_test())
    }

    #[test]
    fn a_ticket_tells_where_it_is_and_what_comes_next() {
        let reply = query("TK-20241215-001").expect("known");
        assert_eq!(
            reply.summary.as_deref(),
            Some("当前进度：部门经理审批。详细节点：提交申请 > 直属主管审批 > 部门经理审批 > 财务复核")
        );
        assert_eq!(reply.data.next_step.as_deref(), Some("财务复核"));
        assert_eq!(reply.data.updated_at, "2024-12-16T10:24:00+08:00");
    }

    #[test]
    fn an_unknown_step_is_said_to_be_unknown() {
        let reply = query("TK-20241216-001").expect("known");
        assert_eq!(reply.data.current_step, None);
        assert!(reply.summary.is_some_and(|summary| summary.starts_with("当前进度：未知。")));
    }

    #[test]
    fn each_failure_has_a_name_of_its_own() {
        let name = |id| query(id).expect_err("fails").name;
        assert_eq!(name("TK-20241215-999").as_deref(), Some("ticket_not_found"));
        assert_eq!(name("TK-20241217-003").as_deref(), Some("backend_error"));
        assert_eq!(name("TK-20241218-004").as_deref(), Some("backend_timeout"));
        let remote = query("TK-20241217-003").expect_err("archived");
        assert!(
            remote.message.contains("该工单已归档") && remote.hint.is_some_and(|hint| hint.contains('7'))
        );
    }

    #[test]
    fn open_tickets_are_those_under_way() {
        let reply = list_open(&backend());
        let ids: Vec<_> = reply.data.tickets.iter().map(|ticket| ticket.ticket_id.as_str()).collect();
        assert_eq!(ids, ["TK-20241215-001", "TK-20241216-001", "TK-20241218-004"]);
        assert_eq!(reply.next_actions.len(), 1);
    }

    #[test]
    fn the_whole_plugin_answers_and_stops_when_cancelled() {
        let host = Host::new(plugin()).config(json!({"file": shipped(), "request_timeout": 60}));
        let reply = host.call("query_status", json!({"ticket_id": "TK-20241215-002"}));
        assert_eq!(reply.data()["current_step"], "已完成");
        assert_eq!(reply.data()["next_step"], json!(null));
        let slow = host.begin("query_status", json!({"ticket_id": "TK-20241218-004"}));
        slow.wait_for_progress(0);
        slow.cancel();
        assert!(slow.wait().error().is_cancelled());
    }

    #[test]
    fn without_its_file_the_plugin_says_which_it_misses() {
        let host = Host::new(plugin()).config(json!({"file": "/nonexistent/tickets.json"}));
        let error = host.start().expect_err("no file");
        assert!(error.message.contains("/nonexistent/tickets.json"), "{error}");
    }

    #[test]
    fn the_manifest_shows_the_form_of_a_ticket_number() {
        let manifest = plugin().manifest().expect("well declared");
        let schema: serde_json::Value =
            serde_json::from_str(manifest.operations[0].input_schema.get()).expect("JSON");
        assert_eq!(schema["properties"]["ticket_id"]["pattern"], r"^TK-\d{8}-\d{3}$");
        assert_eq!(schema["properties"]["ticket_id"]["examples"][0], "TK-20241215-001");
        assert_eq!(manifest.operations[0].timeout_ms, Some(5_000));
    }
}
