#!/bin/sh
# Runs programs on several ranks of this machine: check_ranks.sh same TRAIN_ON_RANKS, for the bits of 1, 2 and 4 ranks;
# check_ranks.sh alike N TRAIN_ON_RANKS, for N ranks with 1 and 2 threads each; check_ranks.sh errors N RANK_ERRORS;
# check_ranks.sh levels OTHER_LEVELS, for two ranks of different levels; check_ranks.sh files N CHECKPOINTS, with a folder
# that is removed; check_ranks.sh options PROGRAM [ARGUMENT...], of which one rank alone complains, as it alone says what
# there is; check_ranks.sh aborts ABORTS, for what rapt_abort_on_error says.
set -eu
what=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/mpi/launch.sh
. "$(dirname "$0")/launch.sh"

run() { # ranks, threads of each, program and arguments: prints what it prints
    count=$1 threads=$2
    shift 2
    OMP_NUM_THREADS=$threads mpirun -n "$count" "$@"
}

same() { # file, file, what they are of
    [ -s "$1" ] || { echo "check_ranks: nothing was printed by $3" >&2 && exit 1; }
    cmp "$1" "$2" || { echo "check_ranks: other bits: $3" >&2 && exit 1; }
}

case $what in
same)
    for ranks in 1 2 4; do
        run "$ranks" 1 "$2" 4 >"$work/$ranks"
        same "$work/1" "$work/$ranks" "$ranks ranks with 4 parts"
    done
    ;;
alike)
    for threads in 1 2; do
        run "$2" "$threads" "$3" >"$work/$threads"
    done
    same "$work/1" "$work/2" "$2 ranks with 1 and 2 threads"
    ;;
files)
    mkdir "$work/files"
    run "$2" 1 "$3" "$work/files"
    ;;
errors) run "$2" 1 "$3" ;;
levels) OMP_NUM_THREADS=1 mpirun -n 1 "$2" : -n 1 env RAPT_LEVEL=baseline "$2" ;;
aborts)
    for trial in 'before mpi_ring: MPI is not running' 'within rank 1: mpi_ring: the communicator is MPI_COMM_NULL' \
        'behind mpi_ring: MPI is not running'; do
        ! run 2 1 "$2" "${trial%% *}" >"$work/out" 2>"$work/err" || { echo "check_ranks: no end: $trial" >&2 && exit 1; }
        grep -q "^${trial#* }" "$work/err" || { cat "$work/err" >&2 && echo "check_ranks: nobody says: $trial" >&2 && exit 1; }
    done
    ;;
options)
    shift
    status=0
    run 3 1 "$@" >"$work/out" 2>"$work/err" || status=$?
    [ "$status" != 0 ] || { echo "check_ranks: no complaint of $*" >&2 && exit 1; }
    said=$(grep -c "^$(basename "$1"): " "$work/err" || true)
    [ "$said" = 1 ] || { cat "$work/err" >&2 && echo "check_ranks: $said ranks complain of $*" >&2 && exit 1; }
    run 3 1 "$1" --help >"$work/out"
    [ "$(grep -c '^usage: ' "$work/out")" = 1 ] || { echo "check_ranks: --help of $1 is not there once" >&2 && exit 1; }
    ;;
esac
