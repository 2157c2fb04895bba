#!/bin/sh
# Tests of hello: sh test.sh
set -eu
cd "$(dirname "$0")"

# says LINE ANSWER: what the plugin answers to one line is exactly that.
says() {
    got=$(printf '%s\n' "$1" | sh hello.sh)
    [ "$got" = "$2" ] || { printf '%s\nexpected %s\ngot      %s\n' "$1" "$2" "$got" >&2; exit 1; }
}

call() { printf '{"jsonrpc":"2.0","id":7,"method":"call","params":{"operation":"%s","arguments":{"name":%s}}}' "$@"; }

says "$(call say_hello '"Ada"')" '{"jsonrpc":"2.0","id":7,"result":{"data":"Hello, Ada!"}}'
says "$(call say_hello '"$(ls) `ls` \"; ls #\\n🙂"')" '{"jsonrpc":"2.0","id":7,"result":{"data":"Hello, $(ls) `ls` \"; ls #\\n🙂!"}}'
says "$(call shout '"Ada"')" '{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"hello does not know that operation"}}'
says '{"jsonrpc":"2.0","id":18446744073709551615,"method":"init"}' '{"jsonrpc":"2.0","id":18446744073709551615,"result":{}}'
says '{"jsonrpc":"2.0","id":"a,\"b","method":"init"}' '{"jsonrpc":"2.0","id":"a,\"b","result":{}}'
says '{"method": "init", "params": {"id": 2}, "id": 1, "jsonrpc": "2.0"}' '{"jsonrpc":"2.0","id":1,"result":{}}'
says '{"jsonrpc":"2.0","method":"cancel","params":{"call_id":"1"}}' ''
echo "all is well"
