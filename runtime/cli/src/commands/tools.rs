//! `plugd tools`: what models are offered, in the form that each of them takes.

use plugd_engine::Opening;
use plugd_protocol::control::{Dialect, Tool, ToolsParams, ToolsReport};
use serde_json::Value;

use super::{call, lint};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Format;
use crate::render;

/// What models are offered, in the form of each of them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
With --for, stdout is the JSON array that a program hands to the model; `plugd call` takes the names \
in it as they are. What cannot run is not offered. Works with and without a daemon. Exits 4 if there \
is no such tool or category, 6 if the tool's plugin is down.

Examples:
  plugd tools
  plugd tools --for openai > tools.json
  plugd tools --categories                       then: plugd tools --category archive
  plugd tools archive.search --for mcp
  plugd tools --for anthropic --sizes
  plugd tools --all                              also what is not offered, and why")]
pub(crate) struct Args {
    /// Only this tool, by any of its names; or the path of an executable or folder, for its tools
    tool: Option<String>,
    /// For whom: each takes another form
    #[arg(long = "for", value_enum, value_name = "DIALECT")]
    dialect: Option<Spoken>,
    /// Only the categories, and how many tools each has
    #[arg(long, conflicts_with_all = ["tool", "category", "sizes"])]
    categories: bool,
    /// Only the tools of this category; what declares none is in `other`
    #[arg(long, value_name = "CATEGORY", conflicts_with = "tool")]
    category: Option<String>,
    /// How many bytes each declaration has, and all together
    #[arg(long)]
    sizes: bool,
    /// Also what is not offered, with the reason
    #[arg(long)]
    all: bool,
}

/// The dialects there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Spoken {
    /// Function tools of OpenAI's API
    Openai,
    /// Tools of Anthropic's API
    Anthropic,
    /// Tools as MCP's tools/list has them
    Mcp,
}

impl From<Spoken> for Dialect {
    fn from(spoken: Spoken) -> Dialect {
        match spoken {
            Spoken::Openai => Dialect::Openai,
            Spoken::Anthropic => Dialect::Anthropic,
            Spoken::Mcp => Dialect::Mcp,
        }
    }
}

pub(crate) async fn run(mut args: Args, context: &Context) -> Result<u8, Failure> {
    let path = args.tool.take_if(|tool| call::is_path(tool));
    let runtime = match path {
        Some(path) => lint::open_path(&path, context).await?.0,
        None => context.runtime(Opening::Everything).await?,
    };
    let params = ToolsParams {
        dialect: args.dialect.map(Dialect::from),
        categories: args.categories,
        category: args.category.clone(),
        tool: args.tool.clone(),
        all: args.all,
        caller: context.global.caller.clone(),
    };
    let shown = match runtime.tools(&params).await {
        Ok(report) => show(&report, &args, context),
        Err(failure) => Err(failure),
    };
    runtime.finish().await;
    shown.map(|()| 0)
}

fn show(report: &ToolsReport, args: &Args, context: &Context) -> Result<(), Failure> {
    let output = &context.output;
    let is_for_programs = !args.categories && !args.sizes && (args.dialect.is_some() || args.tool.is_some());
    match output.format {
        Format::Json => output.document(report),
        Format::Data if !args.categories => output.document(&declarations(&report.tools)),
        Format::Data => output.document(report),
        Format::Text if is_for_programs => {
            // Whoever reads stdout reads declarations: all else is said beside it.
            if !report.not_offered.is_empty() {
                output.note(&render::not_offered(&report.not_offered));
            }
            output.text(&render::pretty(&declarations(&report.tools).to_string()))
        }
        Format::Text => {
            let (categories, sizes, all) = (args.categories, args.sizes, args.all);
            let asked =
                render::ToolsAsked { categories, sizes, all, caller: context.global.caller.as_deref() };
            output.text(&render::tools(report, asked, output.paint()))
        }
    }
}

fn declarations(tools: &[Tool]) -> Value {
    tools.iter().map(|tool| tool.declaration.clone()).collect()
}
