//! What a client does about calls: make, stop, answer and explain them, read what is kept of them.

use std::time::Duration;

use plugd_protocol::CallResult;
use plugd_protocol::control::{
    AnswerParams, AnswerReport, AskNotice, AsksParams, CallDetail, CallParams, CallsParams, CallsReport,
    CallsShowParams, CallsStatsParams, CallsStatsReport, CancelMineReport, CancelParams, CancelReport,
    Explanation, JobsParams, JobsReport, JobsWaitParams, ResultParams, ResultReport, method,
};
use tokio::time::timeout;

use super::{Client, ClientError, Following};

/// So long after a call's own time its result is still awaited before the daemon is asked anything.
const LATE: Duration = Duration::from_secs(1);

/// A daemon that answers nothing for so long hangs.
const SILENT: Duration = Duration::from_secs(2);

impl Client {
    /// Runs an operation; dropping the client, not this future, cancels it.
    ///
    /// Where the call has a timeout and no result came by then, the daemon is asked whether it is
    /// there: it may hang, or the clocks stand still while a person is asked.
    ///
    /// # Errors
    /// [`ClientError`]; a call that failed is a result, not an error.
    pub async fn call(&self, params: &CallParams) -> Result<CallResult, ClientError> {
        let result = self.request(method::CALL, params);
        let Some(allowed) = params.timeout_ms.map(Duration::from_millis) else { return result.await };
        tokio::pin!(result);
        let mut patience = allowed.saturating_add(LATE);
        loop {
            if let Ok(result) = timeout(patience, &mut result).await {
                return result;
            }
            tokio::select! {
                biased;
                result = &mut result => return result,
                answers = self.answers() => if !answers {
                    return Err(ClientError::Lost("it does not answer any more".to_owned()));
                }
            }
            patience = LATE;
        }
    }

    /// Whether the daemon answers at all.
    async fn answers(&self) -> bool {
        timeout(SILENT, self.graph()).await.is_ok()
    }

    /// What a call would do; nothing runs.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn explain(&self, params: &CallParams) -> Result<Explanation, ClientError> {
        self.request(method::CALL_EXPLAIN, params).await
    }

    /// Stops a call.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn cancel(&self, params: &CancelParams) -> Result<CancelReport, ClientError> {
        self.request(method::CANCEL, params).await
    }

    /// Stops every call made through this client that has not ended; each comes back cancelled.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn cancel_mine(&self) -> Result<CancelMineReport, ClientError> {
        self.request(method::CANCEL_MINE, &serde_json::Map::new()).await
    }

    /// Answers questions of a call, or declines them; a call that waited for nobody is carried on, and
    /// its result comes back.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn answer(&self, params: &AnswerParams) -> Result<AnswerReport, ClientError> {
        self.request(method::ANSWER, params).await
    }

    /// The questions of the calls made through this client with `can_ask`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn follow_asks(&self) -> Result<Following<AskNotice>, ClientError> {
        self.follow_asks_with(&AsksParams::default()).await
    }

    /// The same, and where asked for the progress of all calls made through this client.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn follow_asks_with(&self, params: &AsksParams) -> Result<Following<AskNotice>, ClientError> {
        self.subscribe(method::ASKS_SUBSCRIBE, params, method::ASKS_UNSUBSCRIBE).await
    }

    /// Recorded calls, the latest first.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn calls(&self, params: &CallsParams) -> Result<CallsReport, ClientError> {
        self.request(method::CALLS, params).await
    }

    /// Everything that is kept of one call.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn call_detail(&self, params: &CallsShowParams) -> Result<CallDetail, ClientError> {
        self.request(method::CALLS_SHOW, params).await
    }

    /// How each operation does.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn calls_stats(&self, params: &CallsStatsParams) -> Result<CallsStatsReport, ClientError> {
        self.request(method::CALLS_STATS, params).await
    }

    /// Calls that run in the background, or did.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn jobs(&self, params: &JobsParams) -> Result<JobsReport, ClientError> {
        self.request(method::JOBS, params).await
    }

    /// Waits for the end of one of them; `pending` where that took too long.
    ///
    /// # Errors
    /// [`ClientError`]; a job that failed is a result, not an error.
    pub async fn jobs_wait(&self, params: &JobsWaitParams) -> Result<CallResult, ClientError> {
        self.request(method::JOBS_WAIT, params).await
    }

    /// A page of a result that is kept.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn result(&self, params: &ResultParams) -> Result<ResultReport, ClientError> {
        self.request(method::RESULT, params).await
    }
}
