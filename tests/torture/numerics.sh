#!/bin/sh
# numerics.sh BUILD: every elementary function of float32 and its gradient against double, at each level, and hard rows.
#     STEP=N        each N-th of the 2³² float32 (default 257, half a minute; 1: all, an hour)
#     FUNCTIONS=…   these alone
#     ROWS=N        rows of softmax, variance, norms, losses and attention (default 10000000, half a minute)
#     QUAD_ROWS=N   as many of them against numbers of 113 bits (default 1000000, a minute)
set -eu
step=${STEP:-257}
rows=${ROWS:-10000000}
quad_rows=${QUAD_ROWS:-1000000}
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
bad=0
# shellcheck disable=SC2086 # a list of names
"$1/tests/numerics_elementary" --step "$step" ${FUNCTIONS:-} > "$lines" || bad=1
awk -F '\t' -v step="$step" '
    $3 + 0 > value[$1] + 0 || !($1 in value) { value[$1] = $3 }
    $5 + 0 > slope[$1] + 0 || !($1 in slope) { slope[$1] = $5 }
    !seen[$1]++ { order[++count] = $1 }
    $7 != "" { failed[$1] = ", " $7 }
    END { for (i = 1; i <= count; i++) { f = order[i]
        printf "| numerics | %s of every %s float32, all levels | %s ulp, gradient %s ulp%s |\n", f,
            step == 1 ? "" : step "th", value[f], slope[f], failed[f] } }' "$lines"
hard_rows() { # program, how many, what is behind them in the table
    "$1" "$2" > "$lines" || bad=1
    awk -F '\t' -v rows="$2" -v reference="$3" '
        { printf "| numerics | %s of %d hard rows%s | %s · 2⁻²⁴ of %s |\n", $1, rows, reference, $3, $2 }' "$lines"
}
hard_rows "$1/tests/numerics_rows" "$rows" ''
[ ! -x "$1/tests/numerics_rows_quad" ] || hard_rows "$1/tests/numerics_rows_quad" "$quad_rows" ' against 113 bits'
exit "$bad"
