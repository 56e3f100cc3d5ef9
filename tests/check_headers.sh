#!/bin/sh
# Every public header compiles alone, without a warning: check_headers.sh c|c++ [COMPILER]
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
case ${1:-} in
c) compiler=${2:-${CC:-cc}} standard=c11 more='' ;;
c++) compiler=${2:-${CXX:-c++}} standard=c++17 more="$root/include/rapt.hpp $root/include/rapt/handles.hpp $root/include/rapt/tensor.hpp" ;;
*) echo "usage: check_headers.sh c|c++ [COMPILER]" >&2 && exit 2 ;;
esac
if ! command -v "${compiler%% *}" >/dev/null; then
    echo "check_headers: there is no $compiler here"
    exit 77
fi

set --
for folder in "$root"/include "$root"/*/include; do
    set -- "$@" "-I$folder"
done

# A header that includes MPI's is left out where there is none.
mpi=$({ pkg-config --cflags ompi-c || mpicc -show; } 2>/dev/null | tr ' ' '\n' | sed -n 's/^-I/-isystem/p' | paste -s -d ' ')
checked=0
failed=0
# shellcheck disable=SC2086 # one or none
for header in "$root"/include/rapt.h $more "$root"/*/include/rapt/*.h; do
    name=${header##*/include/}
    [ -n "$mpi" ] || [ "$name" != rapt/mpi.h ] || continue
    # shellcheck disable=SC2086 # the compiler may come with options
    if echo "#include <$name>" | $compiler -x "${standard%%[0-9]*}" -std=$standard -Wall -Wextra -Wpedantic -Werror \
        "$@" $mpi -fsyntax-only -; then
        checked=$((checked + 1))
    else
        echo "check_headers: $name does not compile alone as $standard" >&2
        failed=$((failed + 1))
    fi
done
echo "check_headers: $checked headers compile alone as $standard, $failed do not"
[ "$failed" -eq 0 ] && [ "$checked" -gt 1 ]
