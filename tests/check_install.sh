#!/bin/sh
# What an installation lays down is enough for a program outside the tree: check_install.sh BUILD_DIRECTORY
# The README's first program is built by the README's line, and run: with what `./run install` says for a folder of one's
# own; in a folder that the loader searches, by its own list; with the static library of a staged installation; by CMake,
# installed and fetched; and as a subproject of meson, fetched too. A Fortran program is built by its line there.
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
"$root/tests/readme_block.sh" c >loop.c
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

# Fortran's module and a program, by the README's line.
line=$(grep '^gfortran ' "$root/README.md") || fail 'the README has no line for Fortran'
if command -v gfortran >/dev/null; then
    cp "$root/tests/xor/xor.f90" program.f90
    (
        # shellcheck disable=SC1091
        . "$work/exports.sh"
        eval "$line" >fortran.txt
    )
    [ -s fortran.txt ] || fail 'the Fortran program printed nothing'
    echo 'check_install: built and ran a Fortran program'
fi

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
    "$loader" -p -C "$work/ld.so.cache" | grep -q "librapt.so.0.2 .*=> $libraries/librapt.so.0.2" || fail 'librapt.so.0.2 is not in the cache of the loader'
    echo 'check_install: in a folder of the loader, its cache knows the library'
else
    echo 'check_install: this system has no ldconfig of glibc; its cache was not looked at'
fi

# By its variables in a folder with a space, before which pkg-config writes a backslash.
install "$work/own folder"
grep '^export ' "$work/said.txt" >"$work/exports.sh"
(
    # shellcheck disable=SC1091
    . "$work/exports.sh"
    eval "${CC:-cc} loop.c $(pkg-config --cflags --libs rapt)"
    ./a.out | cmp - shared.txt
) || fail "what ./run install says of a folder with a space does not hold: $(cat "$work/said.txt")"
if grep "^$root/run: " "$work/said.txt"; then fail 'the shell complains of ./run install'; fi

# What a package for developers takes has CMake's files.
DESTDIR=$work/devel meson install -C "$build" --no-rebuild --tags devel >"$work/log.txt"
[ -n "$(find "$work/devel" -name rapt-config.cmake)" ] || fail "the tag devel leaves out CMake's files"

# With the static library, from a staged installation, which differs from a real one in its prefix alone.
(cd "$work" && DESTDIR=stage install "$work/prefix")
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

# By CMake: from a copy of the installation, which is the same moved elsewhere, first with both libraries, then with the
# static one alone.
cmake_loop() { # CMake's options: the README's loop, built by CMakeLists.txt, prints what it printed before
    rm -rf "$work/cmake"
    { cmake -S . -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/moved" "$@" && cmake --build "$work/cmake"; } >"$work/log.txt" 2>&1 ||
        { cat "$work/log.txt" && fail "CMake does not build with $*"; }
    "$work/cmake/loop" >cmake.txt
    cmp shared.txt cmake.txt || fail "CMake's program prints different things with $*"
}
if command -v cmake >/dev/null; then
    cp -R "$work/own" "$work/moved"
    rm -r "$work/own"
    libraries=$(dirname "$(find "$work/moved" -name librapt.a)")
    cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.16)
project(loop C)
find_package(rapt ${version} CONFIG REQUIRED)
add_executable(loop loop.c)
target_link_libraries(loop ${target})
END
    cmake_loop -Dversion=0.2 -Dtarget=rapt::rapt
    ldd "$work/cmake/loop" | grep -q "librapt.so.0.2 => $libraries/" || fail "CMake links another library: $(ldd "$work/cmake/loop")"
    cmake_loop -Dversion= -Dtarget=rapt::static
    rm "$libraries"/librapt.so*
    cmake_loop -Dversion= -Dtarget=rapt::rapt
    if ldd "$work/cmake/loop" | grep librapt; then fail 'a shared library, where there is the static one alone'; fi
    for version in 0.1...0.3 '0.2.0...<0.2.1'; do cmake_loop -Dversion="$version" -Dtarget=rapt::rapt; done
    if cmake -S . -B "$work/cmake" -Dversion='0.2;COMPONENTS;mpi' >"$work/log.txt" 2>&1; then fail 'CMake finds a component'; fi
    grep -q 'rapt has no component mpi' "$work/log.txt" || { cat "$work/log.txt" && fail 'CMake does not say which component is not there'; }
    for version in 0.1 0.3 1.0 '0.1...<0.2.0' 0.3...0.4; do
        if cmake -S . -B "$work/cmake" -Dversion="$version" >"$work/log.txt" 2>&1; then fail "CMake takes this for $version"; fi
        grep -q 'rapt-config.cmake, version: 0.2' "$work/log.txt" || { cat "$work/log.txt" && fail "CMake did not see which version it refuses"; }
    done
    echo 'check_install: built and ran by CMake, from where the installation was moved to'
else
    echo 'check_install: this system has no cmake; find_package(rapt) was not looked at'
fi

# Fetched, by the README's lines, from a repository of what is here.
readme_block() { # language: the README's first block in it, which fetches from here
    "$root/tests/readme_block.sh" "$1" | sed "s|https://[^ ]*|file://$work/repository|"
}
exports() {
    nm -D --defined-only "$1" | awk '{ print $3 }' | sort
}
if git -C "$root" ls-files >/dev/null 2>&1; then
    mkdir -p "$work/repository" tree/subprojects
    (cd "$root" && git ls-files -z | tar -c --null -T - -f -) | tar -x -C "$work/repository" -f -
    (cd "$work/repository" && git init -q -b main && git add -A && git -c user.name=test -c user.email=test@localhost commit -qm rapt)

    # In another project of meson, with the least there can be.
    cp loop.c tree/
    readme_block ini >tree/subprojects/rapt.wrap
    cat >tree/meson.build <<'END'
project('loop', 'c', default_options: ['buildtype=release', 'optimization=s'])
executable('loop', 'loop.c', dependencies: dependency('rapt'))
END
    { meson setup "$work/tree" tree --unity=on --force-fallback-for=rapt -Drapt:levels=baseline -Drapt:openblas=disabled \
        -Drapt:openmp=disabled && meson compile -C "$work/tree"; } >"$work/log.txt" 2>&1 ||
        { cat "$work/log.txt" && fail 'rapt does not build as a subproject of meson'; }
    for flag in -ffast-math -Ofast -ffinite-math-only; do
        if ${CC:-cc} $flag -fsyntax-only -D_GNU_SOURCE -I"$root/tensor/include" "$root/tensor/runtime.c" 2>"$work/log.txt"; then
            fail "rapt is built with $flag"
        fi
        grep -q 'error.*-ffast-math' "$work/log.txt" || { cat "$work/log.txt" && fail "nothing is said of $flag"; }
    done
    "$work/tree/loop" >tree.txt
    grep -q '^step 1000   loss 0.000' tree.txt || fail "the program with a subproject does not learn: $(cat tree.txt)"
    strip -o small.so "$work/tree/subprojects/rapt/librapt.so"
    [ "$(wc -c <small.so)" -lt 1000000 ] || fail "the smallest library has $(wc -c <small.so) bytes, not less than 1 MB"
    if readelf -d small.so | grep NEEDED | grep -v 'lib[cm]\.so\|ld-linux'; then fail 'the smallest library needs more than libc'; fi
    echo "check_install: built and ran as a subproject of meson, in $(wc -c <small.so) bytes"

    if command -v cmake >/dev/null; then
        mkdir fetch
        cp loop.c fetch/
        readme_block cmake >fetch/CMakeLists.txt
        # In a project whose own flags would mix the library's files, forget NaN, and refuse extensions of gcc.
        printf '%s\n' '#include <rapt.h>' 'int main(void)' '{' \
            'rapt_print(rapt_log(rapt_full(RAPT_FLOAT32, RAPT_SHAPE(40), -1)));' '}' >fetch/nan.c
        printf 'add_executable(nan nan.c)\ntarget_link_libraries(nan rapt::rapt)\n' >>fetch/CMakeLists.txt
        { cmake -S fetch -B "$work/fetch" -DBUILD_SHARED_LIBS=ON -DRAPT_LEVELS=baseline -DCMAKE_UNITY_BUILD=ON \
            -DCMAKE_C_FLAGS='-ffast-math -ffinite-math-only -Wall -Wextra -Wpedantic -Werror' \
            -DCMAKE_C_STANDARD=11 -DCMAKE_C_EXTENSIONS=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON &&
            cmake --build "$work/fetch" -j "$(nproc)"; } >"$work/log.txt" 2>&1 ||
            { cat "$work/log.txt" && fail 'CMake does not fetch and build'; }
        if grep 'kernels.*-std=c11' "$work/fetch/compile_commands.json"; then fail 'kernels are compiled by the standard of the project around'; fi
        "$work/fetch/loop" >fetch.txt
        grep -q '^step 1000   loss 0.000' fetch.txt || fail "the program that CMake fetched does not learn: $(cat fetch.txt)"
        [ "$("$work/fetch/nan" | grep -o nan | wc -l)" -eq 40 ] || fail "fetched with -ffast-math, log(-1) is $("$work/fetch/nan")"
        exports "$work/fetch/_deps/rapt-build/librapt.so" >fetched.txt
        exports "$build/librapt.so" | cmp - fetched.txt || fail "CMake's library exports other functions than meson's"
        echo 'check_install: built and ran by FetchContent'
    fi
else
    echo 'check_install: this is no repository of git; FetchContent and the wrap were not looked at'
fi
