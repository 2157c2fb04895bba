#!/bin/sh
# hello: one operation with an argument, in sh and jq. A line on stdin is a request, a line on stdout its answer.

manifest='{"protocol":1,"name":"hello","version":"1.0.0","description":"Says hello.","operations":[{
"name":"say_hello","title":"Hello","category":"people",
"description":"Says hello to somebody by name. Gives one friendly line back.",
"when_to_use":"Somebody should be greeted, or it is to be seen that a plugin answers.",
"examples":["say hello to Ada","跟小明打个招呼"],
"input_schema":{"type":"object","required":["name"],"properties":{
  "name":{"type":"string","minLength":1,"description":"Who is greeted.","examples":["Ada"]}}},
"output_schema":{"type":"string"},"effects":{"read_only":true,"idempotent":true},"timeout_ms":5000}]}'

[ ! -t 0 ] || { echo 'hello is a plugd plugin; try: plugd call ./hello.sh say_hello name=Ada' >&2; exit 2; }
command -v jq >/dev/null || { echo 'hello needs jq' >&2; exit 125; } # 125: trying again would not help

# request FILTER: a part of the request. It stays data: it goes from jq to printf, and never to the shell.
request() { printf '%s\n' "$line" | jq -c "$1"; }
# answer MEMBER JSON: the one line that answers it, under the id that it came with.
answer() { printf '{"jsonrpc":"2.0","id":%s,"%s":%s}\n' "$id" "$1" "$2"; }
refuse() { answer error "{\"code\":-32601,\"message\":\"hello does not know that $1\"}"; }

while IFS= read -r line; do
    id=${line#'{"jsonrpc":"2.0","id":'} # where plugd writes it, as text: jq before 1.7 rounds long numbers
    [ "$id" = "$line" ] && id=$(request '.id // empty') || id=${id%%,\"method\":*}
    [ -n "$id" ] || continue # a notification: nobody waits for an answer
    case $(request .method) in
    '"describe"') answer result "$(printf %s "$manifest" | tr -d '\n')" ;;
    '"init"') answer result '{}' ;;
    '"shutdown"') answer result '{}' && exit 0 ;;
    '"call"')
        case $(request .params.operation) in
        '"say_hello"') answer result "$(request '{data: "Hello, \(.params.arguments.name)!"}')" ;;
        *) refuse operation ;;
        esac
        ;;
    *) refuse method ;;
    esac
done
