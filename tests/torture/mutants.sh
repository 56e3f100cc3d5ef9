#!/bin/sh
# Plants bugs in the library, one at a time, and runs the tests: a sign, an index, an order, a missing term, off by one.
# RAPT_MUTANTS is how many (300), RAPT_MUTANTS_SEED draws them (1), RAPT_MUTANTS_GROUPS names some groups of files, and
# RAPT_MUTANTS_SINCE is a revision of git: bugs are planted in lines that differ from it alone.
# What was found is kept in BUILD-mutants, and a run that was stopped goes on from there. mutants.py says more.
set -eu
# shellcheck disable=SC2086 # words, or none
exec python3 "$(dirname "$0")/mutants.py" ${RAPT_MUTANTS_SINCE:+--since "$RAPT_MUTANTS_SINCE"} \
    "${1%/}-mutants" "${RAPT_MUTANTS:-300}" "${RAPT_MUTANTS_SEED:-1}" ${RAPT_MUTANTS_GROUPS:-}
