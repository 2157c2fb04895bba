//! `plugd answer`: answers what a call asks, from anywhere.

use plugd_protocol::control::AnswerParams;
use serde_json::Map;

use crate::arguments::Arguments;
use crate::context::Context;
use crate::failure::Failure;

/// Answer what a call asks
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A call that asks shows its token; `plugd events` has it, too. A token is good for one answer, and
only while its call waits: exits 4 otherwise, and 3 where the answer does not fit.

Examples:
  plugd answer 9d1a4c0e-6a57-4b8e-8f0e-0d8f4b1f6a11 yes
  plugd answer 9d1a4c0e-6a57-4b8e-8f0e-0d8f4b1f6a11 name=Ada count:=3
  plugd answer 9d1a4c0e-6a57-4b8e-8f0e-0d8f4b1f6a11 password=@secret.txt
  plugd answer 9d1a4c0e-6a57-4b8e-8f0e-0d8f4b1f6a11 --decline")]
pub(crate) struct Args {
    /// The question's token
    token: String,
    /// name=value for each question; where there is one, the value alone will do
    #[arg(value_name = "ANSWER")]
    words: Vec<String>,
    /// All answers as one JSON object: text, @file, or - for stdin
    #[arg(long, value_name = "JSON")]
    json: Option<String>,
    /// Give no answer; the plugin is told so
    #[arg(long, conflicts_with_all = ["words", "json"])]
    decline: bool,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let declined = args.decline;
    let report = context.daemon().await?.answer(&params(args)?).await?;
    context.output.report(&report, |_| {
        let done = if declined { "declined" } else { "answered" };
        format!("{done}: call {} goes on\n", crate::render::visible(report.call_id.as_str()))
    })?;
    Ok(0)
}

fn params(args: Args) -> Result<AnswerParams, Failure> {
    let mut params =
        AnswerParams { token: args.token, answers: Map::new(), answer: None, decline: args.decline };
    match args.words.as_slice() {
        [] if args.json.is_none() && !args.decline => {
            return Err(Failure::usage("no answer: expected a value, name=value or --decline"));
        }
        [value] if args.json.is_none() && !value.contains('=') && !value.starts_with('@') => {
            params.answer = Some(value.as_str().into());
        }
        words => {
            let json = Arguments::read(words, args.json.as_deref())?.into_json(None)?;
            params.answers = serde_json::from_str(json.get())
                .map_err(|error| Failure::unreadable_arguments(error.to_string()))?;
        }
    }
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(words: &[&str], decline: bool) -> Result<Value, Failure> {
        let words = words.iter().map(ToString::to_string).collect();
        let params = params(Args { token: "t".into(), words, json: None, decline })?;
        Ok(serde_json::to_value(params).unwrap())
    }

    #[test]
    fn one_value_needs_no_name() {
        let sent = |words: &[&str]| read(words, false).unwrap();
        assert_eq!(sent(&["yes"]), json!({"token": "t", "answers": {}, "answer": "yes"}));
        assert_eq!(sent(&["a=1", "b:=2"]), json!({"token": "t", "answers": {"a": "1", "b": 2}}));
        assert_eq!(read(&[], true).unwrap(), json!({"token": "t", "answers": {}, "decline": true}));
        assert_eq!(read(&[], false).unwrap_err().exit, 2);
    }
}
