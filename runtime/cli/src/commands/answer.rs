//! `plugd answer`: answers what a call asks, from anywhere, and carries on one that waited for nobody.

use plugd_engine::Opening;
use plugd_protocol::control::{AnswerParams, AnswerReport};
use plugd_protocol::{CallResult, Status};

use super::jobs;
use crate::arguments::Arguments;
use crate::attend::{self, Attended, attend_with};
use crate::context::Context;
use crate::failure::Failure;
use crate::runtime::{Interruptions, Runtime};

/// Answer what a call asks
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A call that waits for an answer shows its token; `plugd events` has it, too. One that stopped with \
exit code 8 gave a token: it is carried on, and this ends as the call would have. A token is good for \
one answer, and for a time: exits 4 otherwise, and 3 where the answer does not fit. A no exits 7.

Examples:
  plugd answer 9d1a4c0e-6a57-4b8e-8f0e-0d8f4b1f6a11 yes
  plugd answer 9d1a4c0e-6a57-4b8e-8f0e-0d8f4b1f6a11 name=Ada count:=3
  plugd answer 9d1a4c0e-6a57-4b8e-8f0e-0d8f4b1f6a11 password=@secret.txt --yes
  plugd answer 9d1a4c0e-6a57-4b8e-8f0e-0d8f4b1f6a11 --no")]
pub(crate) struct Args {
    /// The question's token
    token: String,
    /// name=value for each question; where there is one, the value alone will do
    #[arg(value_name = "ANSWER")]
    words: Vec<String>,
    /// All answers as one JSON object: text, @file, or - for stdin
    #[arg(long, value_name = "JSON")]
    json: Option<String>,
    /// Agree to what the call does
    #[arg(long, short)]
    yes: bool,
    /// Say no, or give no answer; a plugin that asked is told so
    #[arg(long = "no", visible_alias = "decline", conflicts_with_all = ["words", "json", "yes"])]
    decline: bool,
    /// Ask nothing else at this terminal
    #[arg(long)]
    no_ask: bool,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let (declined, may_ask) = (args.decline, !args.no_ask);
    let mut signals = Interruptions::watch();
    let begun = attend::unless_interrupted(&mut signals, begin(args, context)).await;
    let (params, runtime) = match begun {
        Some(Ok(begun)) => begun,
        none => {
            let attended = none
                .and_then(Result::err)
                .map_or(Attended::NotBegun, |failure| Attended::Ended(Err(failure)));
            let (result, code) = attend::result_of(attended, None, context);
            return attend::show(&result, context).map(|()| code);
        }
    };
    let answered = attend_with(&mut signals, &runtime, may_ask, context, async |reach| {
        let params = AnswerParams { can_ask: reach.can_ask, ..params };
        let report = runtime.answer(params, reach.asker).await;
        let report = report.map_err(|failure| attend::lost_meanwhile(failure, false, None, context))?;
        to_its_end(report, &runtime, context).await
    });
    let attended = match answered.await {
        Attended::Ended(Ok(AnswerReport { result: Some(result), .. })) => Attended::Ended(Ok(result)),
        Attended::Ended(Ok(report)) => {
            let shown = context.output.report(&report, |_| {
                let done = if declined { "declined" } else { "answered" };
                format!("{done}: call {} goes on\n", crate::render::visible(report.call_id.as_str()))
            });
            runtime.finish().await;
            return shown.map(|()| 0);
        }
        Attended::Ended(Err(failure)) => Attended::Ended(Err(failure)),
        Attended::Interrupted(last) => {
            Attended::Interrupted(last.and_then(Result::ok).and_then(|report| report.result).map(Ok))
        }
        Attended::NotBegun => Attended::NotBegun,
    };
    let (result, code) = attend::result_of(attended, None, context);
    let shown = attend::show(&result, context);
    attend::finish(&result, runtime, context).await;
    shown.map(|()| code)
}

/// Everything up to the answer itself.
async fn begin(args: Args, context: &Context) -> Result<(AnswerParams, Runtime), Failure> {
    let given = Given::of(&args)?;
    let runtime = context.runtime(Opening::OnDemand).await?;
    match given.params(args, &runtime, context.global.caller.clone()).await {
        Ok(params) => Ok((params, runtime)),
        Err(failure) => {
            runtime.finish().await;
            Err(failure)
        }
    }
}

/// The same with the end of what goes on in this process: a job of its engine would end with it.
async fn to_its_end(
    report: AnswerReport,
    runtime: &Runtime,
    context: &Context,
) -> Result<AnswerReport, Failure> {
    match (&report.result, runtime) {
        (Some(CallResult { status: Status::Pending, .. }), Runtime::Embedded { .. }) => {
            let wanted = jobs::wanted(report.call_id.clone(), false, context);
            let result = jobs::until_its_end(&wanted, None, runtime).await?;
            Ok(AnswerReport { result: Some(result), ..report })
        }
        _ => Ok(report),
    }
}

/// What was written, before anything of it is fetched.
#[derive(Debug)]
enum Given {
    /// A no, or a yes and nothing else.
    Nothing,
    /// The answer to the one question there is.
    One(String),
    /// Answers by name.
    Named(Arguments),
}

impl Given {
    fn of(args: &Args) -> Result<Given, Failure> {
        match args.words.as_slice() {
            [] if args.json.is_none() => match args.decline || args.yes {
                true => Ok(Given::Nothing),
                false => Err(Failure::usage("no answer: expected a value, name=value, --yes or --no")),
            },
            [value] if args.json.is_none() && !value.contains('=') && !value.starts_with('@') => {
                Ok(Given::One(value.clone()))
            }
            words => Ok(Given::Named(Arguments::read(words, args.json.as_deref())?)),
        }
    }

    async fn params(
        self,
        args: Args,
        runtime: &Runtime,
        caller: Option<String>,
    ) -> Result<AnswerParams, Failure> {
        let mut params = AnswerParams {
            decline: args.decline,
            confirm: args.yes,
            caller: caller.clone(),
            ..AnswerParams::new(args.token)
        };
        match self {
            Given::Nothing => {}
            Given::One(value) => params.answer = Some(value.into()),
            Given::Named(arguments) => {
                let json = arguments.fetch(runtime, caller.as_deref()).await?.into_json(None)?;
                params.answers = serde_json::from_str(json.get())
                    .map_err(|error| Failure::unreadable_arguments(error.to_string()))?;
            }
        }
        Ok(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn read(words: &[&str]) -> Result<Given, Failure> {
        Given::of(&Line::try_parse_from([&["answer", "t"], words].concat()).unwrap().args)
    }

    #[test]
    fn one_value_needs_no_name() {
        assert!(matches!(read(&["yes"]), Ok(Given::One(value)) if value == "yes"));
        assert!(matches!(read(&["a=1", "b:=2"]), Ok(Given::Named(_))));
        assert!(matches!(read(&["a=1", "--yes"]), Ok(Given::Named(_))));
        for alone in ["--decline", "--no", "--yes"] {
            assert!(matches!(read(&[alone]), Ok(Given::Nothing)), "{alone}");
        }
        let nothing = read(&[]).unwrap_err();
        assert_eq!(nothing.exit, 2);
        assert!(nothing.error.message.ends_with("--yes or --no"), "{}", nothing.error.message);
        let both = ["answer", "t", "--yes", "--no"];
        let both = Line::try_parse_from(both).map(|_| ()).unwrap_err().to_string();
        assert!(both.contains("'--no'") && !both.contains("--decline"), "{both}");
    }
}
