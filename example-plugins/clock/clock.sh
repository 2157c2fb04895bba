#!/bin/sh
# clock: a plugin with one operation and no arguments, in POSIX sh.
#
# This is all that the protocol asks for: read a line, answer `describe` and `call` with one line
# each, give the id back as it came, and say "unknown method" (-32601) to everything else. That
# answer to `init` and `shutdown` means there was nothing to do.

manifest='{"protocol":1,"name":"clock","version":"1.0.0","description":"Tells the time of this machine.","operations":[{
"name":"get_current_time",
"title":"Current time",
"description":"Gives the current date and time of this machine. The answer is one ISO 8601 time with its offset from UTC.",
"when_to_use":"Someone asks what time or what day it is, or something has to be reckoned from now.",
"when_not_to_use":"The time of another place is asked for: this is the time here.",
"examples":["what time is it","what is the date today","现在几点了","今天几号"],
"category":"time",
"input_schema":{"type":"object","properties":{}},
"output_schema":{"type":"object","properties":{"time":{"type":"string","format":"date-time","description":"The time, with its offset from UTC."}},"required":["time"]},
"effects":{"read_only":true},
"timeout_ms":5000}]}'

if [ -t 0 ]; then
    printf '%s\n' 'clock, a plugd plugin: get_current_time tells the time of this machine.' \
        'plugd starts it; to try it by hand:' \
        "  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"describe\"}' | sh clock.sh" >&2
    exit 2
fi

# The id and the method stand before the params, and before them only members that hold a string.
LC_ALL=C
export LC_ALL
string='"([^"\\]|\\.)*"'
before='^[^"]*("[a-z]+" *: *'$string' *, *)*'
id_of() { printf '%s\n' "$1" | sed -nE "s#$before\"id\" *: *($string|[-+.0-9eE]+).*#\3#p"; }
method_of() { printf '%s\n' "$1" | sed -nE 's#^.*"method" *: *"([a-z_/]*)".*#\1#p'; }

answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
refuse() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"%s"}}\n' "$id" "$1" "$2"; }

while IFS= read -r line || [ -n "$line" ]; do
    head=${line%%\"params\"*}
    id=$(id_of "$head")
    [ -n "$id" ] || continue # a notification: nobody waits for an answer
    case $(method_of "$head") in
    describe)
        answer "$(printf '%s' "$manifest" | tr '\n' ' ')"
        ;;
    call)
        case $line in
        *'"operation"'*'"get_current_time"'*)
            now=$(date +%Y-%m-%dT%H:%M:%S%z | sed 's/\(..\)$/:\1/')
            answer "{\"data\":{\"time\":\"$now\"},\"summary\":\"Current time is $now\"}"
            ;;
        *) refuse -32601 'clock has one operation: get_current_time' ;;
        esac
        ;;
    *) refuse -32601 'unknown method' ;;
    esac
done
