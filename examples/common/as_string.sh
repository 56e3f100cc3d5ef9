#!/bin/sh
# The lines of a file as a string of C: as_string.sh FILE
set -eu
sed -e 's/[\\"]/\\&/g' -e 's/^/"/' -e 's/$/\\n"/' "$1"
