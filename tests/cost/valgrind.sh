#!/bin/sh
# Says on stdout where a valgrind's tools lie that know how plugd holds its plugins (pidfd_open), as
# VALGRIND_LIB has it; nothing where the installed ones do. Valgrind 3.24 knows, Debian 12's 3.19 does not:
# there Debian 13's tools, which are linked statically, are unpacked into the folder in $1 and installed nowhere.
set -eu
folder=$1

enough() {
    version=$(valgrind --tool=none true 2>&1 | sed -n 's/.*Using Valgrind-\([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
    # shellcheck disable=SC2086
    set -- $version
    [ "${1:-0}" -gt 3 ] || { [ "${1:-0}" -eq 3 ] && [ "${2:-0}" -ge 24 ]; }
}

if ! command -v valgrind >/dev/null || ! command -v strace >/dev/null; then
    echo "it needs valgrind and strace (apt-get install valgrind strace)" >&2
    exit 1
fi
if enough; then
    printf '%s' "${VALGRIND_LIB:-}"
    exit 0
fi

VALGRIND_LIB=$folder/usr/libexec/valgrind
export VALGRIND_LIB
if ! [ -d "$VALGRIND_LIB" ]; then
    key=/usr/share/keyrings/debian-archive-keyring.gpg
    if ! command -v apt-get >/dev/null || ! [ -f "$key" ]; then
        echo "it needs valgrind 3.24 or newer: what is installed does not know the system call pidfd_open" >&2
        exit 1
    fi
    # Lists of its own: what the system installs from stays as it is.
    apt=$(mktemp -d)
    trap 'rm -rf "$apt"' EXIT
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$folder"
    # From where the system has its own packages, the next release.
    from=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 '/debian/*$')
    echo "deb [signed-by=$key] $from trixie main" >"$apt/sources.list"
    if ! (cd "$apt" && for step in update "download valgrind"; do
        # shellcheck disable=SC2086
        timeout 120 apt-get -q -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
            -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" $step >&2 || exit 1
    done && dpkg-deb -x valgrind_*.deb "$folder"); then
        echo "it needs valgrind 3.24 or newer, and Debian 13's could not be fetched" >&2
        exit 1
    fi
fi
if ! enough; then
    echo "it needs valgrind 3.24 or newer, and what was fetched to $folder does not run" >&2
    exit 1
fi
printf '%s' "$VALGRIND_LIB"
