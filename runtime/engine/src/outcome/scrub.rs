//! What a plugin's words may not carry to a caller: stacks, paths, secrets, connection strings.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::stack;

/// What stands in the place of a secret.
pub(super) const HIDDEN: &str = "***";

/// What stands in the place of a path.
const PATH: &str = "[path]";

/// Schemes whose addresses are connection strings, credentials in them or not.
const STORES: &[&str] = &[
    "amqp",
    "amqps",
    "clickhouse",
    "cockroachdb",
    "couchbase",
    "jdbc",
    "kafka",
    "ldap",
    "ldaps",
    "mariadb",
    "mongodb",
    "mongodb+srv",
    "mssql",
    "mysql",
    "mysql+pymysql",
    "nats",
    "oracle",
    "postgres",
    "postgresql",
    "postgresql+asyncpg",
    "postgresql+psycopg2",
    "redis",
    "rediss",
    "sqlite",
    "sqlserver",
];

/// Folders at the root of systems: one of them alone is a path.
const ROOTS: &[&str] = &[
    "Applications",
    "Library",
    "Users",
    "Volumes",
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "lib64",
    "media",
    "mnt",
    "nix",
    "opt",
    "private",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "tmp",
    "usr",
    "var",
];

/// What may stand right after a path and belongs to the sentence.
const SENTENCE_ENDS: [char; 3] = ['.', '!', '?'];

/// One alternative after the other; the first that fits at a place has it.
const SUSPICIOUS: &str = r#"(?x)
    (?P<key>-----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----[\s\S]*?(?:-----END\ [A-Z\ ]*PRIVATE\ KEY-----|$))
  | (?P<url>\b(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*)://[^\s"'<>`]*)
  | (?P<route>\b(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\s+/[^\s"'<>`]*)
  | (?P<bearer>(?i:\bbearer)\s+[A-Za-z0-9._~+/\-]{16,}=*)
  | (?P<authorization>(?i:\bauthorization)["']?\s*[:=]\s*["']?[A-Za-z]+\s+[^\s"',;]+)
  | (?P<named>
        (?P<name>(?i:\b(?:[a-z0-9]+[_\-])*(?:password|passwd|pwd|passphrase|secret|token|api[_\-]?key|
            access[_\-]?key|private[_\-]?key|credentials?)))
        (?P<sign>["']?\s*=\s*|["']\s*:\s*)
        (?:"[^"]*"|'[^']*'|[^\s,;&)\]}"']+))
  | (?P<windows>\b[A-Za-z]:\\{1,2}[^\s"'<>|:*?]*)
  | (?P<before>^|[\s"'`(\[{<=,:;|@])(?P<path>~?(?:/[^\s/"'`()\[\]{}<>,;:|]+)+/?)
"#;

static PATTERN: LazyLock<Regex> = LazyLock::new(|| Regex::new(SUSPICIOUS).expect("the pattern is right"));

/// A plugin's words as its caller may see them.
///
/// `secrets` are hidden wherever they stand. A path that stands in `said`, what the caller itself
/// gave, is no news to the caller and stays.
pub(super) fn scrubbed<'a>(text: &'a str, secrets: &[String], said: &str) -> Cow<'a, str> {
    let text = match stack::removed(text) {
        Cow::Borrowed(text) => hidden(text, secrets),
        Cow::Owned(text) => Cow::Owned(hidden(&text, secrets).into_owned()),
    };
    let replaced = |text: &str| match PATTERN.replace_all(text, |found: &Captures<'_>| instead(found, said)) {
        Cow::Borrowed(_) => None,
        Cow::Owned(replaced) => Some(replaced),
    };
    match replaced(&text) {
        Some(replaced) => Cow::Owned(replaced),
        None => text,
    }
}

/// The text with secrets hidden and nothing else changed.
pub(super) fn hidden<'a>(text: &'a str, secrets: &[String]) -> Cow<'a, str> {
    let mut text = Cow::Borrowed(text);
    for secret in secrets {
        if text.contains(secret.as_str()) {
            text = Cow::Owned(text.replace(secret.as_str(), HIDDEN));
        }
    }
    text
}

/// Whether a name is one that secrets go by.
pub(super) fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "passwd", "pwd", "passphrase", "secret", "token", "key", "credential", "auth", "dsn"]
        .iter()
        .any(|word| name.contains(word))
}

fn instead(found: &Captures<'_>, said: &str) -> String {
    let whole = &found[0];
    if found.name("key").is_some() {
        return "[private key]".to_owned();
    }
    if found.name("url").is_some() {
        return url(whole, &found["scheme"]);
    }
    if found.name("route").is_some() {
        return query_hidden(whole);
    }
    if found.name("bearer").is_some() {
        return format!("Bearer {HIDDEN}");
    }
    if found.name("authorization").is_some() {
        return format!("Authorization: {HIDDEN}");
    }
    if found.name("named").is_some() {
        return format!("{}{}{HIDDEN}", &found["name"], &found["sign"]);
    }
    if found.name("windows").is_some() {
        return path_hidden(whole, whole.rsplit('\\').next(), said);
    }
    let path = &found["path"];
    // A full stop or the like is the sentence's.
    let trimmed = path.trim_start_matches('~').trim_end_matches(SENTENCE_ENDS).trim_matches('/');
    let is_path = path.starts_with('~') || trimmed.contains('/') || ROOTS.contains(&trimmed);
    let shown = if is_path { path_hidden(path, trimmed.rsplit('/').next(), said) } else { path.to_owned() };
    format!("{}{shown}", &found["before"])
}

/// A path's place, or the name of the file where it has one that says what kind of file it is.
fn path_hidden(path: &str, last: Option<&str>, said: &str) -> String {
    let name = last.unwrap_or_default();
    let trimmed = path.trim_end_matches(SENTENCE_ENDS);
    if trimmed.len() > 1 && said.contains(trimmed) {
        return path.to_owned();
    }
    let end = &path[trimmed.len()..];
    let name = name.trim_end_matches(SENTENCE_ENDS);
    let is_file = name.rsplit_once('.').is_some_and(|(stem, extension)| {
        let known = 1..=5;
        !stem.is_empty()
            && known.contains(&extension.len())
            && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
    });
    if is_file { format!("…/{name}{end}") } else { format!("{PATH}{end}") }
}

fn url(whole: &str, scheme: &str) -> String {
    let rest = &whole[scheme.len() + "://".len()..];
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let lower = scheme.to_ascii_lowercase();
    if lower == "file" {
        return PATH.to_owned();
    }
    if authority.contains('@') || STORES.contains(&lower.as_str()) {
        // A full stop or a bracket after it is the sentence's.
        let end = whole.len() - whole.trim_end_matches(['.', ',', ')', ';', ':']).len();
        return format!("{scheme}://{HIDDEN}{}", &whole[whole.len() - end..]);
    }
    query_hidden(whole)
}

/// An address whose query tells a secret by its name.
fn query_hidden(address: &str) -> String {
    let Some((before, query)) = address.split_once('?') else { return address.to_owned() };
    let hide = |part: &str| match part.split_once('=') {
        Some((name, _)) if names_a_secret(name) => format!("{name}={HIDDEN}"),
        _ => part.to_owned(),
    };
    let query: Vec<String> = query.split('&').map(hide).collect();
    format!("{before}?{}", query.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(scrubbed(text, &[], ""), expected);
    }

    /// Row E5.
    #[test]
    fn r_e5_no_path_connection_string_or_password_is_left() {
        check("cannot open /srv/shop/data/orders.db: locked", "cannot open …/orders.db: locked");
        check("cannot open '/home/ada/.ssh/id_rsa'.", "cannot open '[path]'.");
        check("see ~/notes or /tmp.", "see [path] or [path].");
        check(r"cannot open C:\Users\ada\orders.csv", "cannot open …/orders.csv");
        check("in file:///srv/a.py", "in [path]");
        check(
            "OperationalError: postgres://shop:hunter2@db.internal:5432/orders refused",
            "OperationalError: postgres://*** refused",
        );
        check("mongodb+srv://cluster0.internal/shop.", "mongodb+srv://***.");
        check("https://ada:hunter2@example.org/a", "https://***");
        check("host=db password=hunter2 dbname=shop", "host=db password=*** dbname=shop");
        check(r#"{"api_key": "abc", "n": 1}"#, r#"{"api_key": ***, "n": 1}"#);
        check("https://api.example.org/v1?token=abc&n=1", "https://api.example.org/v1?token=***&n=1");
        check("Authorization: Basic YWRhOmh1bnRlcjI= refused", "Authorization: *** refused");
        check("sent Bearer abcdefghijklmnopqrstuvwxyz", "sent Bearer ***");
        check("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "[private key]");
    }

    #[test]
    fn what_is_none_of_that_stays_word_for_word() {
        for text in [
            "no order TK-1 on 2024/01/02",
            "GET https://api.example.org/v1/orders answered 404",
            "POST /v1/orders answered 404: try again and/or wait",
            "unexpected token: expected a date",
            "the basic authentication of the shop failed",
            "1/2 of the items at 10:30, user@example.org",
            "the token was 三 and wrong",
            "/help lists the commands",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn what_the_caller_said_is_no_news_to_the_caller() {
        let said = r#"{"path":"/data/in/report.csv"}"#;
        assert_eq!(scrubbed("no file /data/in/report.csv", &[], said), "no file /data/in/report.csv");
        assert_eq!(scrubbed("no file /data/in/other.csv", &[], said), "no file …/other.csv");
    }

    #[test]
    fn known_secrets_are_hidden_wherever_they_stand() {
        let secrets = ["s3cr3t-XYZ".to_owned()];
        assert_eq!(scrubbed("key s3cr3t-XYZ is wrong (s3cr3t-XYZ)", &secrets, ""), "key *** is wrong (***)");
        assert_eq!(hidden("at /srv/a: s3cr3t-XYZ", &secrets), "at /srv/a: ***");
    }
}
