//! What a client asks about tools: which models are offered, and what could be said better to them.

use plugd_protocol::control::{LintParams, LintReport, ToolsParams, ToolsReport, method};

use super::{Client, ClientError};

impl Client {
    /// What is offered to models.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn tools(&self, params: &ToolsParams) -> Result<ToolsReport, ClientError> {
        self.request(method::TOOLS, params).await
    }

    /// What declarations could say better.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn lint(&self, params: &LintParams) -> Result<LintReport, ClientError> {
        self.request(method::LINT, params).await
    }
}
