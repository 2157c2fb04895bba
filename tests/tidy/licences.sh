#!/bin/sh
# Checks bans, licences and sources of the dependencies with cargo-deny, where it is installed.
set -eu
cd "$(dirname "$0")/../.."

if command -v cargo-deny >/dev/null 2>&1; then
    exec cargo deny --log-level error check bans licenses sources
fi
echo "SKIPPED: bans, licences and sources were not checked: cargo-deny is not installed (cargo install cargo-deny --locked)" >&2
[ "${PLUGD_TEST_REQUIRE_ALL:-}" != 1 ] || { echo "PLUGD_TEST_REQUIRE_ALL=1 allows no skip" >&2; exit 1; }
