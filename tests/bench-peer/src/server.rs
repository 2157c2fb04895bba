//! The echo as an MCP server with one tool.

use std::io;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::{IntoTransport, io::stdio, io::stdio_pipes};
use rmcp::{RoleServer, ServerHandler, ServiceExt, tool, tool_handler, tool_router};

use crate::Setup;

/// The arguments of the tool, and its schema.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct EchoArguments {
    /// What to give back.
    payload: String,
}

/// A server whose only tool gives back what it is given.
#[derive(Clone)]
struct EchoServer {
    tool_router: ToolRouter<EchoServer>,
}

#[tool_router(router = tool_router)]
impl EchoServer {
    /// Gives back its payload.
    #[tool(name = "echo", description = "Gives back its payload.")]
    async fn echo(&self, Parameters(arguments): Parameters<EchoArguments>) -> String {
        arguments.payload
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for EchoServer {}

/// Serves on stdin and stdout until the client leaves.
pub(crate) fn run(setup: Setup) -> io::Result<()> {
    let runtime = setup.runtime()?;
    let served = runtime.block_on(async {
        match setup {
            Setup::Default => serve_on(stdio()).await,
            Setup::Best => serve_on(stdio_pipes()).await,
        }
    });
    // A read of tokio's stdin cannot be cancelled, so waiting for its thread could take for ever.
    runtime.shutdown_background();
    served
}

async fn serve_on<E, A>(transport: impl IntoTransport<RoleServer, E, A>) -> io::Result<()>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let server = EchoServer { tool_router: EchoServer::tool_router() };
    let running = server.serve(transport).await.map_err(io::Error::other)?;
    running.waiting().await.map_err(io::Error::other)?;
    Ok(())
}
