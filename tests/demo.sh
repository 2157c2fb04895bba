#!/bin/sh
# The story of plugd on real processes, told and checked; `make demo` runs it.
#
# PLUGD names the program. Everything happens in a folder of its own, which goes at the end with
# every process; the exit code says whether the story came true.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
PLUGD=${PLUGD:-$root/target/debug/plugd}

lack() {
    printf 'demo: %s\n' "$1" >&2
    exit 1
}
[ -x "$PLUGD" ] || lack "there is no program at $PLUGD: run \`make demo\`, which builds it"
command -v python3 >/dev/null || lack "python3 is missing: apt-get install python3, or your system's way"
for name in tickets trip; do
    [ -x "$root/example-plugins/$name/bin/$name" ] || lack "the plugin $name is not built: run \`make demo\`, which builds it"
done

box=$(mktemp -d "${TMPDIR:-/tmp}/plugd-demo.XXXXXX")
daemon=
callers=
cleanup() {
    status=$?
    trap - EXIT INT TERM HUP
    for pid in $callers; do
        kill "$pid" 2>/dev/null || true
    done
    if [ -S "$box/run/plugd.sock" ] && ! "$PLUGD" --config "$box/plugd.toml" shutdown >/dev/null 2>&1; then
        [ -z "$daemon" ] || kill -9 "$daemon" 2>/dev/null || true
    fi
    rm -rf "$box"
    [ "$status" -eq 0 ] || printf '\nThe story did not come true.\n' >&2
    exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# How it is told: a heading, the command, its output; then what must be true of it.

step() { printf '\n== %s\n' "$*"; }

# run CODE WORD...: runs plugd, shows what was typed and written, and expects an exit code.
run() {
    expected=$1
    shift
    printf '\n$ plugd'
    for word in "$@"; do
        case $word in
        *[!A-Za-z0-9_./:=@,-]*) printf " '%s'" "$word" ;;
        *) printf ' %s' "$word" ;;
        esac
    done
    printf '\n'
    code=0
    "$PLUGD" "$@" >"$box/output" 2>&1 || code=$?
    cat "$box/output"
    [ "$code" -eq "$expected" ] || fail "it exited $code; $expected was to be expected"
}

# says TEXT...: every text stands in the last output.
says() {
    for text in "$@"; do
        grep -qF -- "$text" "$box/output" || fail "its output does not say: $text"
    done
}

fail() {
    printf 'demo: %s\n' "$1" >&2
    [ ! -s "$box/state/daemon.log" ] || { printf 'the end of the log of the daemon:\n'; tail -n 20 "$box/state/daemon.log"; } >&2
    exit 1
}

# until_true WHAT COMMAND...: polls a condition for ten seconds.
until_true() {
    what=$1
    shift
    tries=100
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || fail "not within ten seconds: $what"
        sleep 0.1
    done
}

# A member of a plugin's status, or of the daemon's for an empty name.
status_of() {
    "$PLUGD" --output json status ${1:+"$1"} | python3 -c '
import json, sys
status = json.load(sys.stdin)
print((status["plugins"][0] if sys.argv[1] else status["daemon"])[sys.argv[2]])' "$1" "$2"
}

in_flight() { [ "$(status_of "$1" in_flight)" = "$2" ]; }
gone() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null; }

# The plugins: the five examples, found by scanning, and one that cannot start.

cat >"$box/grumpy.sh" <<'PLUGIN'
#!/bin/sh
while IFS= read -r line; do
    id=$(printf '%s\n' "$line" | sed -nE 's/^[^,]*,"id":([0-9]+),.*/\1/p')
    case $line in
    *'"method":"describe"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocol":1,"name":"grumpy","version":"1.0.0","operations":[{"name":"help","input_schema":{"type":"object"}}]}}\n' "$id" ;;
    *'"method":"init"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"the licence has run out"}}\n' "$id" ;;
    esac
done
PLUGIN
chmod +x "$box/grumpy.sh"
cat >"$box/plugd.toml" <<CONFIG
[daemon]
socket = "run/plugd.sock"
state_dir = "state"

[scan]
dirs = ["$root/example-plugins"]

[plugins.tickets]
timeout = "30s"
config = { request_timeout = 25 }

[plugins.grumpy]
command = ["./grumpy.sh"]
CONFIG
# From here on every command is about this configuration.
PLUGD_CONFIG=$box/plugd.toml
export PLUGD_CONFIG
unset PLUGD_LOG || true

step "A daemon starts in the background, and says what it found and where."
run 0 serve --detach
daemon=$(status_of '' pid)
run 0 list
says clock.get_current_time logs.summary tickets.query_status trip.recommend weather.get_weather
says "found in $root/example-plugins" "configured in $box/plugd.toml"

step "One call to each of five plugins, in three languages."
run 0 call clock.get_current_time
says "Current time is"
run 0 call weather.get_weather city=北京
says 北京的天气
run 0 call logs.summary path_prefix=/api/
says requests
run 0 call tickets.query_status ticket_id=TK-20241215-001
says 当前进度：部门经理审批
run 0 call trip.recommend city=Hangzhou days=2
says "2 days in Hangzhou"

step "A bad argument is refused with the reason, before the plugin sees it."
run 3 call tickets.query_status ticket_id=001
says invalid_arguments ticket_id
run 3 call weather.get_weather citty=Beijing
says "did you mean city?"

step "A plugin is killed while two calls are in flight: they only read, so they are run again; killed once more, both callers know at once, and the next call is answered."
before=$(status_of tickets pid)
for number in 1 2; do
    printf '\n$ plugd call tickets.query_status ticket_id=TK-20241218-004 &    (takes 20 seconds)\n'
    "$PLUGD" call tickets.query_status ticket_id=TK-20241218-004 >"$box/killed.$number" 2>&1 &
    callers="$callers $!"
done
until_true "both calls are in flight" in_flight tickets 2
printf '\n$ kill -9 %s\n' "$before"
kill -9 "$before"
run_again() { [ "$(status_of tickets pid)" != "$before" ] && in_flight tickets 2; }
until_true "both calls are in flight again" run_again
before=$(status_of tickets pid)
printf '\n$ kill -9 %s    (which runs them again)\n' "$before"
kill -9 "$before"
began=$(date +%s)
for pid in $callers; do
    code=0
    wait "$pid" || code=$?
    [ "$code" -eq 6 ] || fail "a call exited $code; 6 was to be expected"
done
callers=
took=$(($(date +%s) - began))
for number in 1 2; do
    cat "$box/killed.$number"
    grep -q 'error 6001 plugin_died' "$box/killed.$number" || fail "a caller was not told that the plugin died"
done
[ "$took" -le 5 ] || fail "the callers were told only after $took seconds"
run 0 call tickets.query_status ticket_id=TK-20241215-001
says 当前进度：部门经理审批
after=$(status_of tickets pid)
[ "$after" != "$before" ] || fail "the same process answered"
printf '(killed: process %s; answering now: process %s)\n' "$before" "$after"

step "A plugin that fails to start is disabled with its reason, and the rest works."
run 6 call grumpy.help
says disabled "the licence has run out"
run 0 status
says "the licence has run out"
run 0 call weather.get_weather city=Shanghai
says "The weather in Shanghai"

step "trip uses weather. Without weather it says so; with weather it works again."
run 0 graph
says "weather >=1.0"
run 0 stop weather
run 6 call weather.get_weather city=Shanghai
says 6003
code=0
printf '\n$ plugd call trip.recommend city=Hangzhou\n'
"$PLUGD" call trip.recommend city=Hangzhou >"$box/output" 2>&1 || code=$?
cat "$box/output"
[ "$code" -ne 0 ] || fail "trip answered without weather"
says weather
run 0 start weather
run 0 call trip.recommend city=Hangzhou
says Hangzhou

step "Everything stops, and no process is left."
processes=$daemon
for name in clock logs tickets trip weather; do
    pid=$(status_of "$name" pid)
    [ "$pid" = None ] || processes="$processes $pid"
done
run 0 shutdown
says "the daemon has stopped"
for pid in $processes; do
    until_true "process $pid is gone" gone "$pid"
done
daemon=
printf '(gone: processes %s)\n' "$processes"

printf '\nThe story came true.\n'
