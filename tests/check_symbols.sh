#!/bin/sh
# The libraries define what the public headers declare and take no other name: check_symbols.sh BUILD_DIRECTORY
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
build=${1:?usage: check_symbols.sh BUILD_DIRECTORY}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

complain() { # what, file of names: a failure if there are any
    if [ -s "$2" ]; then
        echo "check_symbols: $1:" >&2
        sed 's/^/  /' "$2" >&2
        failed=1
    fi
}

defined() { # of the nm options and file given
    nm --defined-only "$@" | awk 'NF == 3 { print $3 }' | sort -u
}

check() { # library without its ending, and the folders whose headers declare what it exports
    library=$1
    shift
    for folder; do
        sed -n 's/^RAPT_API [^(]*[ *]\(rapt_[a-z0-9_]*\)(.*/\1/p' "$root/$folder"/include/rapt/*.h
    done | sort -u >"$work/declared"
    defined -D "$build/$library.so" >"$work/exported"
    defined -g "$build/$library.a" >"$work/global"
    for list in declared exported global; do
        [ -s "$work/$list" ] || { echo "check_symbols: found no $list names of $library" >&2 && exit 1; }
    done
    comm -23 "$work/declared" "$work/exported" >"$work/absent"
    complain "declared in a public header and not exported by $library.so" "$work/absent"
    comm -13 "$work/declared" "$work/exported" >"$work/extra"
    complain "exported by $library.so and in no public header" "$work/extra"
    grep -v '^rapt_' "$work/exported" >"$work/foreign" || true
    complain "exported by $library.so and not named rapt_" "$work/foreign"
    grep -v '^rapt_' "$work/global" >"$work/foreign" || true
    complain "global in $library.a and not named rapt_" "$work/foreign"
    echo "check_symbols: $library: $(wc -l <"$work/exported") exported, $(wc -l <"$work/global") global in the static library"
}

check librapt tensor autograd nn optim
[ ! -e "$build/mpi/librapt-mpi.so" ] || check mpi/librapt-mpi mpi
exit $failed
