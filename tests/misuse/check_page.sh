#!/bin/sh
# check_page.sh [--write] MISTAKES PAGE: the tables of the page are those that the program prints. --write puts them
# there: what stands before the first heading "## " stays.
set -eu
write=''
if [ "$1" = --write ]; then
    write=yes
    shift
fi
program=$1 page=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
{
    sed '/^## /,$d' "$page"
    "$program" --page
} >"$folder/page"
if [ -n "$write" ]; then
    cat "$folder/page" >"$page"
elif ! diff -u "$page" "$folder/page"; then
    echo "check_page: the tables are others now; tests/misuse/check_page.sh --write $program $page" >&2
    exit 1
fi
