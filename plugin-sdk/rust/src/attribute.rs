//! The attribute that makes a function an operation.

/// Makes a function an operation of a plugin: its parameters are the arguments, its doc comment the description.
///
/// ```
/// use plugd_sdk::{Context, Error, Plugin, operation};
///
/// /// Greets someone by name. Gives one friendly line back.
/// #[operation(read_only, idempotent, examples("say hello to Ada", "跟小明打个招呼"))]
/// fn hello(
///     /// Who is greeted.
///     #[arg(length = 1..=40, example = "Ada")]
///     name: String,
///     /// How often.
///     #[arg(default = 1, range = 1..=10)]
///     times: u32,
///     cx: &Context,
/// ) -> Result<String, Error> {
///     cx.info(format!("greeting {name}"));
///     Ok(vec![format!("hello {name}"); times as usize].join(", "))
/// }
///
/// let plugin = Plugin::new("greet", "1.0.0").operation(hello::operation());
///
/// // It is still the function that it was.
/// assert_eq!(hello("Ada".to_owned(), 2, &Context::for_test()).unwrap(), "hello Ada, hello Ada");
/// ```
///
/// The function stays as it is. Beside it comes a type of its name, so that `hello::operation()` is its
/// declaration, an [`Operation`](crate::Operation) like any other.
///
/// # Parameters
///
/// In any order:
///
/// | parameter | |
/// |---|---|
/// | `cx: &Context` | the call. `cx: &AsyncContext` in an `async fn` |
/// | `state: &S` | any other reference: what [`Plugin::init`](crate::Plugin::init) opened |
/// | `name: T` | an argument; `T` is `Deserialize` and `JsonSchema`. An `Option<T>` may be left out |
/// | `args: T` | all arguments in one struct, where `args` or `arguments` is the only one, or a pattern such as `Hello { name }: Hello` |
///
/// It returns a `Result` of any error that [`Error`](crate::Error) is made from, or data alone.
///
/// # What is said of an argument
///
/// Its doc comment is its description. `#[arg(…)]` says more:
///
/// | | |
/// |---|---|
/// | `default`, `default = 1` | what it is when it is left out: `T::default()`, or this. Text for a `String` |
/// | `range = 1..=10` | between which numbers it lies; `1..` and `..=10` leave one side open |
/// | `length = 1..=40` | how long a text or list may be |
/// | `pattern = r"^TK-\d+$"` | a regular expression that a text matches |
/// | `format = "date"` | a format of JSON Schema |
/// | `example = "Ada"`, `examples("Ada", "小明")` | such as |
/// | `rename = "type"` | its name for callers, where it is none in Rust |
/// | `secret` | it is shown and kept nowhere |
/// | `description = TEXT` | instead of the doc comment |
///
/// # What is said of the operation
///
/// The words are those of [the manifest](crate::Operation): `read_only`, `idempotent`, `destructive`,
/// `open_world` and `long_running` by themselves or `= false`; `title`, `when_to_use`, `when_not_to_use`,
/// `category`, `scope`, `description` and `name` with a text; `examples(…)`; `timeout_ms`,
/// `stall_timeout_ms`, `cache_ttl` (seconds) and `result_limit` (bytes) with a number;
/// `audience = "plugins"`; `confirm = "always"` or `"never"`; `input_schema` and `output_schema` with a
/// `serde_json::Value`.
///
/// # What does not compile
///
/// A word that there is not, with the nearest that there is; so of an argument:
///
/// ```compile_fail
/// #[plugd_sdk::operation(readonly)]
/// fn now() -> u64 { 0 }
/// ```
///
/// A type without a JSON Schema:
///
/// ```compile_fail
/// #[plugd_sdk::operation(read_only)]
/// fn wait(until: std::time::Instant) {}
/// ```
///
/// An argument that is borrowed:
///
/// ```compile_fail
/// #[plugd_sdk::operation]
/// fn greet(name: &str) -> String { name.to_owned() }
/// ```
///
/// State of another type than the plugin's:
///
/// ```compile_fail
/// #[plugd_sdk::operation]
/// fn count(state: &u8) -> u8 { *state }
///
/// plugd_sdk::Plugin::new("p", "1.0.0").init(|_: (), _| Ok(String::new())).operation(count::operation());
/// ```
#[doc(inline)]
pub use plugd_sdk_macros::operation;
