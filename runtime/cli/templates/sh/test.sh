#!/bin/sh
# Tests of the plugin: sh test.sh

cd "$(dirname "$0")" || exit 1
failed=0

# check WHAT ARGUMENTS EXPECTED: calls hello with these arguments; the answer is to hold what is expected.
check() {
    answer=$(printf '{"jsonrpc":"2.0","id":1,"method":"call","params":{"operation":"hello","arguments":%s}}\n' "$2" |
        sh plugin.sh 2>&1)
    case $answer in
    *"$3"*) echo "ok: $1" ;;
    *)
        echo "FAILED: $1: expected $3 in $answer"
        failed=1
        ;;
    esac
}

check 'somebody is greeted by name' '{"name":"Ada"}' '"result":{"data":"Hello, Ada!"}'
check 'a name is any text' '{"name":"Ada \"the first\" 三"}' '"data":"Hello, Ada \"the first\" 三!"'
check 'nobody is not greeted' '{"name":" "}' '"name":"nobody_to_greet"'
exit "$failed"
