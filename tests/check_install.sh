#!/bin/sh
# What `meson install` lays down is enough for a program outside the tree: check_install.sh BUILD_DIRECTORY
# Installs below a temporary folder, then builds and runs examples/loop.c there, with the shared library and with the
# static one, as a user of pkg-config would.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
build=${1:?usage: check_install.sh BUILD_DIRECTORY}
build=$(CDPATH='' cd -- "$build" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

meson install -C "$build" --no-rebuild --quiet --destdir "$work/stage"
description=$(find "$work/stage" -name rapt.pc)
[ -n "$description" ] || { echo 'check_install: no rapt.pc was installed' >&2 && exit 1; }

# A staged installation differs from a real one in its prefix alone.
sed -i "s|^prefix=|prefix=$work/stage|" "$description"
PKG_CONFIG_PATH=$(dirname "$description")
export PKG_CONFIG_PATH
libraries=$(pkg-config --variable=libdir rapt)

cp "$root/examples/loop.c" "$work"
cd "$work"
# shellcheck disable=SC2046 # lists of words, here and below
${CC:-cc} loop.c $(pkg-config --cflags --libs rapt) -o loop-shared
LD_LIBRARY_PATH=$libraries ./loop-shared >shared.txt
echo 'check_install: loop.c built and ran with the shared library'

rm -f "$libraries"/librapt.so*
# shellcheck disable=SC2046
${CC:-cc} loop.c $(pkg-config --static --cflags --libs rapt) -o loop-static
./loop-static >static.txt
echo 'check_install: loop.c built and ran with the static library'

if ! cmp -s shared.txt static.txt; then
    echo 'check_install: the two programs printed different things:' >&2
    diff shared.txt static.txt >&2
    exit 1
fi
