//! Lines, however they come: in pieces, slowly, long, and while nobody reads the answers.

use std::time::Duration;

use plugd_protocol::plugin::method;
use serde_json::json;

use crate::ear::Answer;
use crate::kit::{ANSWER, DESCRIBE, Kit, UNKNOWN_METHOD, describe_params, millis};
use crate::scenario::{Came, Needs, Scenario, Stage, Verdict};
use crate::session::Session;

/// What is tried here.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "reads_lines_in_pieces",
        shows: "reads a line however it is cut",
        does: "Writes requests in two pieces: within a key, within each character of several bytes, within an escape, before the line end; and one byte by byte.",
        anchor: "frames",
        fix: "collect bytes until a line feed comes, and decode the whole line",
        stage: Stage::Beside,
        needs: Needs::Refusing,
        run: |kit| Box::pin(reads_lines_in_pieces(kit)),
    },
    Scenario {
        name: "reads_a_large_line",
        shows: "reads a line of 1 MiB",
        does: "Sends a request with 1 MiB of text, and another one after it.",
        anchor: "frames",
        fix: "read lines of up to 16 MiB: no fixed buffer, no `readline` with a limit",
        stage: Stage::Beside,
        needs: Needs::Refusing,
        run: |kit| Box::pin(reads_a_large_line(kit)),
    },
    Scenario {
        name: "reads_the_largest_line",
        shows: "reads a line of nearly 16 MiB",
        does: "Sends a request just below the frame limit. Where one of 1 MiB takes long this is tried only when it is asked for.",
        anchor: "frames",
        fix: "read lines of up to 16 MiB: no fixed buffer, no `readline` with a limit",
        stage: Stage::Slow,
        needs: Needs::Refusing,
        run: |kit| Box::pin(reads_the_largest_line(kit)),
    },
    Scenario {
        name: "waits_for_a_slow_reader",
        shows: "waits where nobody reads its answers for a while",
        does: "Asks for more than a pipe holds and reads nothing meanwhile; then each answer must be there and whole.",
        anchor: "frames",
        fix: "write the rest where a write took only a part, and try again where it would block",
        stage: Stage::Beside,
        needs: Needs::Ready,
        run: |kit| Box::pin(waits_for_a_slow_reader(kit)),
    },
];

/// Text with characters of one to four bytes, and what JSON escapes.
const TEXT: &str = "a é 検 🙂 \\\"quoted\\\" \\\\ \\u0001 \\ud83d\\ude42";

/// So long a piece is alone in the pipe.
const APART: Duration = Duration::from_millis(3);

/// The pause between single bytes.
const DRIP: Duration = Duration::from_millis(1);

/// The longest of frames takes this much of what the limit allows.
const ENVELOPE: usize = 256;

/// One MiB of text.
const LARGE: usize = 1024 * 1024;

/// Where a line of [`LARGE`] takes longer, one of the limit is not tried unasked.
const LARGE_SOON: Duration = Duration::from_millis(150);

/// So much of answers is left unread: more than any pipe holds.
const UNREAD: usize = 256 * 1024;

/// No more requests than this are made for it, and no fewer than that.
const UNREAD_REQUESTS: [usize; 2] = [10, 400];

/// How long answers are left unread.
const UNREAD_FOR: Duration = Duration::from_millis(150);

/// The line of a request whose params hold text of many kinds.
fn line(session: &mut Session, id: u64) -> Vec<u8> {
    session.request_with(id, UNKNOWN_METHOD, &json!({}));
    let params = format!("{{\"text\":\"{TEXT}\",\"nested\":{{\"jsonrpc\":\"2.0\",\"id\":1}}}}");
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{UNKNOWN_METHOD}\",\"params\":{params}}}\n")
        .into_bytes()
}

/// Waits for the answer to a line of that kind, which must refuse it.
async fn refused(
    session: &mut Session,
    id: u64,
    within: Duration,
    when: &str,
) -> Result<Duration, crate::scenario::Finding> {
    let (answer, took) = session.answer(id, within).await.map_err(|fault| fault.when(when))?;
    match answer {
        Answer::Error(_) => Ok(took),
        Answer::Result(_) => Err(session.fault(format!("{when}: it was answered with a result"))),
        Answer::Broken(broken) => Err(session.broken(when, &broken)),
    }
}

pub(super) async fn reads_lines_in_pieces(kit: Kit) -> Came {
    let mut session = kit.idle().await?;
    let whole = line(&mut session, 50_000);
    // Within a key, within each character of several bytes, within an escape, before the line end.
    let mut cuts = vec![1, 12, whole.len() - 1, whole.len() - 2];
    cuts.extend(whole.iter().enumerate().filter(|(_, byte)| (0x80..0xC0).contains(*byte)).map(|(at, _)| at));
    cuts.extend(whole.windows(2).position(|pair| pair == b"\\u").map(|at| at + 3));
    for (id, cut) in (50_001..).zip(cuts) {
        let bytes = line(&mut session, id);
        session.write(&bytes[..cut]);
        session.flush(ANSWER).await;
        session.listen(APART).await;
        session.write(&bytes[cut..]);
        refused(&mut session, id, ANSWER, &format!("a line in two pieces, cut after {cut} bytes")).await?;
    }
    let bytes = line(&mut session, 50_000);
    for byte in bytes {
        session.write(&[byte]);
        session.listen(DRIP).await;
    }
    refused(&mut session, 50_000, ANSWER, "a line byte by byte").await?;
    kit.give_back(session);
    Ok(Verdict::PASSED)
}

/// Sends a line with so many bytes of text, and gives back how long its answer took.
async fn long_line(
    session: &mut Session,
    bytes: usize,
    within: Duration,
) -> Result<Duration, crate::scenario::Finding> {
    let unit = "plugd 検査 é 🙂 ";
    let mut text = unit.repeat(bytes / unit.len());
    text.push_str(&"x".repeat(bytes - text.len()));
    let id = session.send(UNKNOWN_METHOD, &json!({"text": text}));
    let took = refused(session, id, within, &format!("a line of {bytes} bytes")).await?;
    session.ask(UNKNOWN_METHOD, &json!({}), ANSWER).await?;
    Ok(took)
}

pub(super) async fn reads_a_large_line(kit: Kit) -> Came {
    let limit = kit.settings().frame_limit.saturating_sub(ENVELOPE);
    let mut session = kit.idle().await?;
    let took = long_line(&mut session, LARGE.min(limit), kit.call_time()).await?;
    kit.give_back(session);
    Ok(Verdict::Passed(Some(format!("a line of 1 MiB was answered after {} ms", millis(took)))))
}

pub(super) async fn reads_the_largest_line(kit: Kit) -> Came {
    let limit = kit.settings().frame_limit.saturating_sub(ENVELOPE);
    let mut session = kit.ready().await?;
    let took = long_line(&mut session, LARGE.min(limit), kit.call_time()).await?;
    let is_wanted = kit.options().only.iter().any(|name| name == "reads_the_largest_line");
    let ratio = u32::try_from(limit / LARGE).unwrap_or(u32::MAX).saturating_add(1);
    if took > LARGE_SOON && !is_wanted {
        let told =
            format!("a line of 1 MiB takes {} ms: ask for this scenario alone with --only", millis(took));
        return Ok(Verdict::Skipped(told));
    }
    let took = long_line(&mut session, limit, kit.call_time().max(took * ratio * 3)).await?;
    session.bury().await;
    Ok(Verdict::Passed(Some(format!("a line of {limit} bytes was answered after {} ms", millis(took)))))
}

pub(super) async fn waits_for_a_slow_reader(kit: Kit) -> Came {
    let mut session = kit.idle().await?;
    let (manifest, took) = session.result(method::DESCRIBE, &describe_params(), DESCRIBE).await?;
    let [least, most] = UNREAD_REQUESTS;
    let in_a_second = usize::try_from(1_000_000 / took.as_micros().max(1)).unwrap_or(most);
    let count = (UNREAD / manifest.get().len().max(1)).min(in_a_second).clamp(least, most);
    session.read_stdout(false);
    let asked: Vec<u64> = (0..count).map(|_| session.send(method::DESCRIBE, &describe_params())).collect();
    session.listen(UNREAD_FOR).await;
    session.read_stdout(true);
    for id in asked {
        let answered = session.answer(id, kit.call_time()).await;
        let when = format!("{count} answers that were not read for a while");
        let (answer, _) = answered.map_err(|fault| fault.when(&when))?;
        if let Answer::Broken(broken) = answer {
            return Err(session.broken("a request, not read for a while,", &broken));
        }
    }
    kit.give_back(session);
    Ok(Verdict::Passed(Some(format!("{count} answers waited to be read"))))
}
