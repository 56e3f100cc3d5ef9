#!/bin/sh
# What RAPT_PROFILE and RAPT_TRACE do to a program: a report when it ends, a trace file that is JSON, lines of ops; and a
# sentence where the setting is wrong. check_profile.sh PROGRAM
set -eu
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
command -v python3 > /dev/null || { echo "skipped: there is no python3"; exit 77; }
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"

RAPT_PROFILE=trace.json "$program" > /dev/null 2> report
grep -q '^affine .* forward ' report
grep -q '^outside ' report
python3 - <<'PYTHON'
import json
events = json.load(open('trace.json'))['traceEvents']
assert len(events) > 100, len(events)
for event in events:
    assert event['ph'] == 'X' and event['ts'] >= 0 and event['dur'] >= 0, event
assert {'forward', 'backward', 'walk', 'step', 'module'} == {event['cat'] for event in events}
# A module is drawn around its ops: that of an affine op begins before it and ends after it.
modules = [event for event in events if event['cat'] == 'module' and event['name'] == 'Sequential 0']
ops = [event for event in events if event['cat'] == 'forward' and event['args']['module'] == 'Sequential 0']
assert len(modules) == len(ops) == 1000, (len(modules), len(ops))
for module, op in zip(modules, ops):
    assert module['ts'] <= op['ts'] and op['ts'] + op['dur'] <= module['ts'] + module['dur'] + 0.01
assert any(event['args']['in'].startswith('float32 [') for event in events)
assert any(event['args']['flops'] > 0 for event in events)
PYTHON

RAPT_PROFILE=1 "$program" 2> report > /dev/null
grep -q '^outside ' report
RAPT_PROFILE=yes "$program" 2> complaint > /dev/null
grep -q "RAPT_PROFILE is 'yes'; 1, or the name of a file that ends in .json, expected" complaint
RAPT_PROFILE=/nowhere/at/all.json "$program" 2> complaint > /dev/null
grep -q "'/nowhere/at/all.json' cannot be written" complaint

# A named pipe is waited for and written to.
if mkfifo pipe.json; then
    (sleep 0.2; cat pipe.json > piped.json) &
    RAPT_PROFILE=pipe.json "$program" > /dev/null 2> report
    wait $!
    python3 -c "import json; assert len(json.load(open('piped.json'))['traceEvents']) > 100"
    [ -p pipe.json ]
fi

RAPT_TRACE=1 "$program" 2> lines > /dev/null
grep -q '^forward  affine: float32 \[' lines
grep -q '^backward affine: float32 \[' lines
for off in 0 ''; do
    RAPT_TRACE=$off RAPT_PROFILE=$off "$program" 2> nothing > /dev/null
    if [ -s nothing ]; then
        echo "RAPT_TRACE='$off' RAPT_PROFILE='$off' wrote:"
        cat nothing
        exit 1
    fi
done
