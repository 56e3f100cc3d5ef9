#!/bin/sh
# ./run install of a user who is not root, which root makes nobody for it: into a folder of one's own, where a program
# builds and runs by what is said; staged; and into a folder of others, with and without sudo. check_ordinary_user.sh
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
user=''
if [ "$(id -u)" -eq 0 ]; then
    command -v setpriv >/dev/null || { echo 'skipped: there is no setpriv, by which root becomes nobody' && exit 77; }
    user='setpriv --reuid=65534 --regid=65534 --clear-groups'
fi
git -C "$root" ls-files >/dev/null 2>&1 || { echo 'skipped: this is no repository of git' && exit 77; }
work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

fail() {
    echo "check_ordinary_user: $*" >&2
    cat "$work/said" >&2
    exit 1
}

as_user() {
    # shellcheck disable=SC2086 # a list of words
    $user env -u CCACHE_DIR -u DESTDIR -u PKG_CONFIG_PATH -u LD_LIBRARY_PATH HOME="$work" "$@"
}

install() { # PATH, then assignments and the folder: ./run install, whose status is returned
    path=$1
    shift
    as_user PATH="$path" RAPT_BUILD="$work/build" "$@" >"$work/said" 2>&1
}

# Sources and a small build are the user's own, wherever the present ones are.
mkdir "$work/source" "$work/bin"
(cd "$root" && git ls-files -z | tar -c --null -T - -f -) | tar -x -C "$work/source" -f -
run=$work/source/run
cd "$work"
[ -z "$user" ] || chown -R 65534:65534 "$work"
as_user meson setup "$work/build" "$work/source" -Dtests=disabled -Dexamples=false -Dmpi=disabled -Dopenblas=disabled \
    -Dlevels=baseline -Doptimization=0 >"$work/said" || fail 'no build'

install "$PATH" "$run" install "$work/own" || fail 'no installation in a folder of its own'
grep '^export ' "$work/said" >exports.sh || fail 'no variables for a folder of its own'
"$root/tests/readme_block.sh" c >loop.c
# shellcheck disable=SC2016 # for the inner shell
as_user sh -c '. ./exports.sh && ${CC:-cc} loop.c $(pkg-config --cflags --libs rapt) && ./a.out' >said 2>&1 || fail 'no program'
grep -q '^step 1000   loss 0.000' said || fail 'the program does not learn'

# Staged, with a prefix that is not to be written to.
install "$PATH" DESTDIR="$work/stage" "$run" install /usr || fail 'no staged installation'
[ -n "$(find "$work/stage/usr" -name rapt.pc)" ] || fail 'nothing is staged'

# A folder of others: without sudo it is told before anything is built, and with sudo only the files are laid down by it.
mkdir others
chmod 0555 others
[ -z "$user" ] || chown 65534:65534 others
for program in dirname id; do ln -s "$(command -v $program)" bin; done
status=0
install "$work/bin" "$run" install "$work/others/rapt" || status=$?
[ $status -eq 1 ] || fail "into a folder of others: status $status, not 1"
grep -q "others/rapt is not to be written to, and there is no sudo" said || fail 'nothing is said of leave to write'
[ "$(wc -l <said)" -eq 1 ] || fail 'more than a sentence is said'
printf '#!/bin/sh\necho "$*" >>"%s/calls"\nchmod u+w "%s/others"\nexec "$@"\n' "$work" "$work" >bin/sudo
chmod +x bin/sudo
install "$work/bin:$PATH" "$run" install "$work/others/rapt" || fail 'no installation by sudo'
[ -n "$(find "$work/others/rapt" -name rapt.pc)" ] || fail 'sudo laid nothing down'
grep -q '^env DESTDIR= .*meson install ' calls || fail "sudo was asked for: $(cat calls)"
if grep -v '^env DESTDIR= .*meson install \|^env ldconfig' calls; then fail 'sudo was asked for more than the files'; fi

# A build directory of others.
status=0
chmod 0555 others
install "$PATH" RAPT_BUILD="$work/others/build" "$run" install "$work/own" || status=$?
[ $status -eq 1 ] || fail "a build directory of others: status $status, not 1"
grep -q 'others/build is not to be written to; to build elsewhere: RAPT_BUILD=' said || fail 'nothing is said of where to build'
echo 'check_ordinary_user: ./run install serves who is not root'
