//! The JSON Schema of `plugd.toml`, for editors.

use super::file::ConfigFile;

/// JSON Schema 2020-12 of the file, made from the very keys that are read.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(ConfigFile).to_value();
    schema["title"] = "plugd.toml".into();
    schema
}
