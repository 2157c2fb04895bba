#!/bin/sh
# Checks the syntax of every script of the repository, as far as its interpreter is installed.
set -eu
cd "$(dirname "$0")/../.."

failed=0
skipped=0

# scripts PATTERN: the files of that name.
scripts() {
    find .ci example-plugins plugin-sdk tests protocol runtime \
        \( -name node_modules -o -name target -o -name bin \) -prune -o -type f -name "$1" -print
}

# check PROGRAM PATTERN COMMAND...: runs COMMAND on each file that matches.
check() {
    program=$1 pattern=$2
    shift 2
    files=$(scripts "$pattern")
    [ -n "$files" ] || return 0
    if ! command -v "$program" >/dev/null 2>&1; then
        echo "SKIPPED: the syntax of $pattern was not checked: $program is not installed" >&2
        skipped=1
        return 0
    fi
    while read -r file; do
        "$@" "$file" || { echo "$file: its syntax is wrong" >&2; failed=1; }
    done <<FILES
$files
FILES
}

check python3 '*.py' python3 -c 'import ast, sys; ast.parse(open(sys.argv[1], encoding="utf-8").read(), sys.argv[1])'
check node '*.js' node --check
check node '*.mjs' node --check
check sh '*.sh' sh -n
check bash run bash -n

[ "$skipped" = 0 ] || [ "${PLUGD_TEST_REQUIRE_ALL:-}" != 1 ] || {
    echo "PLUGD_TEST_REQUIRE_ALL=1 allows no skip" >&2
    exit 1
}
exit "$failed"
