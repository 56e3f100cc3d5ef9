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

sed -n 's/^RAPT_API [^(]*[ *]\(rapt_[a-z0-9_]*\)(.*/\1/p' "$root"/*/include/rapt/*.h | sort -u >"$work/declared"
defined -D "$build/librapt.so" >"$work/exported"
defined -g "$build/librapt.a" >"$work/global"
for list in declared exported global; do
    [ -s "$work/$list" ] || { echo "check_symbols: found no $list names" >&2 && exit 1; }
done

comm -23 "$work/declared" "$work/exported" >"$work/absent"
complain 'declared in a public header and not exported by librapt.so' "$work/absent"
comm -13 "$work/declared" "$work/exported" >"$work/extra"
complain 'exported by librapt.so and in no public header' "$work/extra"
grep -v '^rapt_' "$work/exported" >"$work/foreign" || true
complain 'exported by librapt.so and not named rapt_' "$work/foreign"
grep -v '^rapt_' "$work/global" >"$work/foreign" || true
complain 'global in librapt.a and not named rapt_' "$work/foreign"

echo "check_symbols: $(wc -l <"$work/exported") exported, $(wc -l <"$work/global") global in the static library"
exit $failed
