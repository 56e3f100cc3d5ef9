#!/bin/sh
# The site builds without a fault: check_site.sh PYTHON FOLDER LIBRARY ("" where there is no shared one)
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
python=$1 folder=$2 library=$3
set --
if [ -n "$library" ]; then
    nm -D --defined-only "$library" | awk '$3 ~ /^rapt_/ { print $3 }' >"$folder.names"
    set -- --names "$folder.names"
fi
exec "$python" "$root/docs/site/build.py" "$folder" "$@"
