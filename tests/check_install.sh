#!/bin/sh
# What an installation lays down is enough for a program outside the tree: check_install.sh BUILD_DIRECTORY
# The README's first program is built by the README's line, and run: with what `./run install` says for a folder of one's
# own; in a folder that the loader searches, by its own list; and with the static library of a staged installation.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
build=${1:?usage: check_install.sh BUILD_DIRECTORY}
build=$(CDPATH='' cd -- "$build" && pwd)
work=$(mktemp -d)
prefix=$(meson introspect "$build" --buildoptions |
    python3 -c 'import json, sys; print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))')
trap 'meson configure "$build" "-Dprefix=$prefix" && meson compile -C "$build" >"$work/log.txt"; rm -rf "$work"' EXIT
unset DESTDIR PKG_CONFIG_PATH LD_LIBRARY_PATH

fail() {
    echo "check_install: $*" >&2
    exit 1
}

install() { # folder: ./run install, whose last lines go to said.txt
    RAPT_BUILD=$build "$root/run" install "$1" >"$work/log.txt" 2>&1 || { cat "$work/log.txt" && fail "no installation in $1"; }
    grep -v '^Installing ' "$work/log.txt" >"$work/said.txt"
}

mkdir "$work/empty"
cd "$work/empty"
awk '/^```c$/ { sample++; next } /^```$/ { if (sample) exit } sample { print }' "$root/README.md" >loop.c
[ -s loop.c ] || fail 'the README has no program'

# By the two variables that the installation prints.
install "$work/own"
grep '^export ' "$work/said.txt" >"$work/exports.sh" || fail "no variables for a folder of one's own: $(cat "$work/said.txt")"
(
    # shellcheck disable=SC1091
    . "$work/exports.sh"
    # shellcheck disable=SC2046 # a list of words, here and below
    ${CC:-cc} loop.c $(pkg-config --cflags --libs rapt)
    ./a.out >shared.txt
)
if ./a.out 2>/dev/null; then fail 'the program runs without the variables, so that this shows nothing'; fi
echo 'check_install: built and ran in a folder of its own, by what ./run install said'

# The Python package finds the library that it was installed with.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$work/own/share/rapt/python python3 -c 'import rapt; rapt.ones((2,)) + 1' ||
    fail 'the installed Python package does not work'

# In a folder that the loader searches: its list and its cache are the test's.
if loader=$(PATH=$PATH:/sbin:/usr/sbin command -v ldconfig) && "$loader" --version 2>/dev/null | grep -qi 'glibc\|gnu libc'; then
    mkdir "$work/bin" "$work/system"
    libraries=$(PKG_CONFIG_PATH=$build/meson-private pkg-config --variable=libdir rapt)
    libraries=$work/system/${libraries#"$work/own/"}
    echo "$libraries" >"$work/ld.so.conf"
    printf '#!/bin/sh\nexec "%s" -f "%s" -C "%s" "$@"\n' "$loader" "$work/ld.so.conf" "$work/ld.so.cache" >"$work/bin/ldconfig"
    chmod +x "$work/bin/ldconfig"
    PATH=$work/bin:$PATH install "$work/system"
    if grep -q LD_LIBRARY_PATH "$work/said.txt"; then fail "a variable for a folder that the loader searches: $(cat "$work/said.txt")"; fi
    grep -q "^export PKG_CONFIG_PATH=" "$work/said.txt" || fail 'pkg-config does not search there, and nothing says so'
    "$loader" -p -C "$work/ld.so.cache" | grep -q "librapt.so.0 .*=> $libraries/librapt.so.0" || fail 'librapt.so.0 is not in the cache of the loader'
    echo 'check_install: in a folder of the loader, its cache knows the library'
else
    echo 'check_install: this system has no ldconfig of glibc; its cache was not looked at'
fi

# With the static library, from a staged installation, which differs from a real one in its prefix alone.
DESTDIR=$work/stage install "$work/prefix"
if grep -q '^export ' "$work/said.txt"; then fail 'a staged installation speaks of variables'; fi
description=$(find "$work/stage" -name rapt.pc)
[ -n "$description" ] || fail 'no rapt.pc was installed'
sed -i "s|^prefix=|prefix=$work/stage|" "$description"
PKG_CONFIG_PATH=$(dirname "$description")
export PKG_CONFIG_PATH
rm -f "$(pkg-config --variable=libdir rapt)"/librapt.so*
# shellcheck disable=SC2046
${CC:-cc} loop.c $(pkg-config --static --cflags --libs rapt) -o static
./static >static.txt
cmp shared.txt static.txt || fail 'the shared library and the static one print different things'
echo 'check_install: built and ran with the static library'
