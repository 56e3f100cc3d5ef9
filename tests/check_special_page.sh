#!/bin/sh
# docs/special-values.md is what the library gives: check_special_page.sh SPECIAL_PAGE [--write]
set -eu
page=$(CDPATH='' cd -- "$(dirname -- "$0")/../docs" && pwd)/special-values.md
program=${1:?usage: check_special_page.sh SPECIAL_PAGE [--write]}
if [ "${2:-}" = --write ]; then
    "$program" >"$page"
    exit
fi
given=$(mktemp)
trap 'rm -f "$given"' EXIT
"$program" >"$given" || { status=$? && cat "$given" && exit $status; } # 77 at a level that the processor lacks
if ! diff -u "$page" "$given"; then
    echo "check_special_page: if that is as it should be, tests/check_special_page.sh $program --write" >&2
    exit 1
fi
