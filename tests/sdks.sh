#!/bin/sh
# The SDKs' own tests, or with `check` their formatting and types, each as far as its language is installed.
# The Rust SDK is a crate of the workspace and comes with its tests.
set -eu
cd "$(dirname "$0")/.."

what=${1:-test}
python=${PYTHON:-python3}
skipped=0
failed=0

# skip WHAT WHY: says loudly that something was not looked at.
skip() {
    echo "SKIPPED: $1: $2" >&2
    skipped=1
}

# in_folder FOLDER COMMAND...: runs it there, and goes on with the others if it fails.
in_folder() {
    folder=$1
    shift
    echo "== $folder: $*"
    (cd "$folder" && "$@") || { echo "$folder: $* failed" >&2; failed=1; }
}

python_sdk() {
    case $what in
    test) in_folder plugin-sdk/python "$python" -m unittest discover -s tests ;;
    check) ;; # its syntax is checked with that of all other scripts
    esac
}

node_sdk() {
    command -v node >/dev/null 2>&1 || { skip plugin-sdk/node "node is not installed"; return; }
    case $what in
    test) in_folder plugin-sdk/node sh -c "exec node --test test/*.test.js" ;;
    check)
        if [ -x plugin-sdk/node/test/node_modules/.bin/tsc ]; then
            in_folder plugin-sdk/node test/node_modules/.bin/tsc -p test
        else
            skip "the types of plugin-sdk/node" "npm install --prefix plugin-sdk/node/test brings the compiler"
        fi
        ;;
    esac
}

go_sdk() {
    command -v go >/dev/null 2>&1 || { skip plugin-sdk/go "go is not installed"; return; }
    case $what in
    test) in_folder plugin-sdk/go go test ./... ;;
    check)
        unformatted=$(gofmt -l plugin-sdk/go example-plugins)
        [ -z "$unformatted" ] || { echo "gofmt would change: $unformatted" >&2; failed=1; }
        in_folder plugin-sdk/go go vet ./...
        ;;
    esac
}

case $what in
test | check) ;;
*)
    echo "usage: tests/sdks.sh [test|check]" >&2
    exit 2
    ;;
esac
python_sdk
node_sdk
go_sdk
[ "$skipped" = 0 ] || [ "${PLUGD_TEST_REQUIRE_ALL:-}" != 1 ] || {
    echo "PLUGD_TEST_REQUIRE_ALL=1 allows no skip" >&2
    exit 1
}
exit "$failed"
