#!/bin/sh
# ./run hands the number of jobs on, and says what is wrong with one and with other arguments; it prints the catalogue of
# what is named, a user's file included; it cleans up what meson made, and nothing else; and it works in its own folder,
# whatever link it is called by: check_run.sh BUILD_DIRECTORY
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
RAPT_BUILD=$(CDPATH='' cd -- "${1:?usage: check_run.sh BUILD_DIRECTORY}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ninja=$(command -v ninja || command -v ninja-build)
printf '#!/bin/sh\necho "$@" >>"%s"\nexec "%s" "$@"\n' "$work/calls" "$ninja" >"$work/ninja"
chmod +x "$work/ninja"
NINJA=$work/ninja
export RAPT_BUILD NINJA
failed=0

complain() {
    echo "check_run: $*" >&2
    failed=1
}

expect_jobs() { # arguments of ./run: ninja is asked for one job
    : >"$work/calls"
    "$root/run" "$@" >"$work/log" 2>&1 || { complain "./run $* failed:" && cat "$work/log"; }
    grep -q -- '-j *1\b' "$work/calls" || { complain "./run $* did not call ninja with -j 1, but with:" && cat "$work/calls"; }
}

refuse() { # what it says, then arguments of ./run
    wanted=$1
    shift
    status=0
    "$root/run" "$@" >"$work/log" 2>&1 || status=$?
    [ "$status" -eq 2 ] || complain "./run $*: status $status, not 2"
    grep -q -- "$wanted" "$work/log" || { complain "./run $* does not say '$wanted' but:" && cat "$work/log"; }
    [ "$(wc -l <"$work/log")" -eq 1 ] || { complain "./run $*: not one line:" && cat "$work/log"; }
}

expect_catalogue() { # success or failure, what it says, then arguments of ./run gradcheck
    result=$1
    wanted=$2
    shift 2
    found=success
    "$root/run" gradcheck "$@" >"$work/log" 2>&1 || found=failure
    [ "$found" = "$result" ] || { complain "./run gradcheck $*: $found:" && cat "$work/log"; }
    grep -q -- "$wanted" "$work/log" || { complain "./run gradcheck $* does not say '$wanted' but:" && cat "$work/log"; }
}

expect_jobs build -j 1
expect_jobs build -j1
expect_jobs build -Dexamples=true -j 1
expect_jobs test -j 1 error
grep -q '^Ok: *1 *$' "$work/log" || complain "./run test -j 1 error did not run one test: $(cat "$work/log")"
refuse '-j needs a number from 1 on$' build -j
refuse '-j needs a number from 1 on$' build -Dexamples=true -j
refuse '-j needs a number from 1 on$' build -j ''
refuse '-j needs a number' build -j many
refuse '-j needs a number' build -j 0
refuse '-j needs a number' test -j -1 error
refuse 'no test is called so: eror;' test eror
refuse 'no test is called so: --suite nothing;' test --suite nothing
refuse 'no benchmark is called so: nothing; all names: meson test -C .* --benchmark --list$' bench nothing
# A build without tests: success would say that they hold.
mkdir "$work/none"
printf "project('none')\n" >"$work/none/meson.build"
meson setup "$work/none/build" "$work/none" >"$work/log"
for words in test 'test error' bench; do
    # shellcheck disable=SC2086 # a list of words
    if RAPT_BUILD=$work/none/build "$root/run" $words >"$work/log" 2>&1; then complain "./run $words succeeds without tests"; fi
    grep -q '^run: there are none in ' "$work/log" || { complain "./run $words without tests says:" && cat "$work/log"; }
done
expect_catalogue success '^| op relu |' relu gru
expect_catalogue success '^| layer gru |' relu gru
expect_catalogue failure "no op or layer 'relo'; near it: relu" relo
expect_catalogue success '^| layer right |' "$root/tests/catalogue/own_layer.c" right
expect_catalogue failure 'by backward' "$root/tests/catalogue/own_layer.c" wrong
# What meson did not make is not removed, whatever it is called.
mkdir -p "$work/made/meson-private" "$work/made-debug/meson-private" "$work/made-of-mine/meson"
RAPT_BUILD=$work/made "$root/run" clean
for directory in "$work/made" "$work/made-debug"; do
    [ ! -e "$directory" ] || complain "./run clean left $directory"
done
[ -d "$work/made-of-mine/meson" ] || complain './run clean removed what meson had not made'
# Called by links, one to another, or found by PATH, it works in the folder of the file, not in a link's.
tree="$work/a tree" other="$work/an other"
mkdir -p "$tree" "$other/far"
cp "$root/run" "$root/meson.build" "$tree"
ln -s '../a tree/run' "$other/run"
ln -s "$other/run" "$other/far/rapt"
for words in "$other/run" "$other/far/rapt" "$tree/run" rapt run; do
    mkdir -p "$tree/build/meson-private" "$other/build/meson-private" "$other/far/build/meson-private"
    (unset RAPT_BUILD && cd "$other" && PATH=$other/far:$tree:$PATH && "$words" clean) || complain "$words clean failed"
    [ ! -e "$tree/build" ] || complain "$words clean left the build directory of its tree"
    for directory in "$other" "$other/far"; do
        [ -d "$directory/build" ] || complain "$words clean removed the build directory of a link's folder"
    done
done
# And a copy in a folder of something else does nothing there.
cp "$root/run" "$work/none"
if (unset RAPT_BUILD && "$work/none/run" clean >"$work/log" 2>&1); then complain 'a copy of run works in a foreign folder'; fi
grep -q 'none is not the folder of rapt' "$work/log" || { complain 'a copy of run in a foreign folder says:' && cat "$work/log"; }
[ -d "$work/none/build" ] || complain 'a copy of run cleaned a foreign folder'
refuse 'need takes packages' need
refuse "clean takes no arguments, not '--help'" clean --help
refuse "install takes a folder, not '--help'" install --help
refuse "install takes one folder, not also 'b'" install "$work/a" b
refuse "install takes one folder, not also 'b'" install -j 1 "$work/a" b
refuse "docs takes one folder, not also 'b'" docs "$work/a" b
refuse "docs takes a folder, not '--help'" docs --help
refuse 'docs takes a folder, not an empty word' docs ''
refuse 'install takes a folder, not an empty word' install ''
refuse 'install takes a folder, not an empty word' install '' -j 1
refuse 'install takes a folder without ' install "$work/it's"
refuse 'install takes a folder without ' install "$work/a:b"
refuse 'install takes a folder without ' install "$work/a#b"
refuse 'install takes a folder without ' install "$work/a;b"
refuse 'install takes a folder without ' install "$work/$(printf 'a\tb')"
refuse "format takes no arguments, not 'x'" format x
refuse "check takes no arguments, not 'x'" check x
refuse "help takes no arguments, not 'x'" help x
refuse "port needs arm, i686, musl, s390x, web or windows, not 'vax'" port vax
refuse "port takes one system, not also 'web'" port arm web
[ $failed -eq 0 ] && echo 'check_run: -j reaches ninja, wrong arguments are refused, and gradcheck prints what is named'
exit $failed
