#!/usr/bin/env python3
"""coverage.py COVERAGE.json EXCEPTIONS LEAST: the branches of each folder that tests take, as rows of a table.

COVERAGE.json is gcovr's. Left out of the count is the side of || and && on which a function that fails would say that
it did not, one branch for each that is written so, and what EXCEPTIONS lists, as FILE | LINE OF THE SOURCE | WHY:
branches of that line that no test takes. Fails where a folder has fewer than LEAST percent of the others, and where an
exception is none: its line is gone, or all its branches are taken."""
import collections
import json
import re
import sys

# What stands behind || or && and always is false, such as rapt_fail.
FAILS = re.compile(r'(?:\|\||&&) !?(?:rapt_fail|fail)\w*\(')


def read_exceptions(path):
    exceptions = {}
    for line in open(path, encoding='utf-8'):
        if line.strip() and not line.startswith('#'):
            file, text, reason = (part.strip() for part in line.split(' | ', 2))
            exceptions[file, text] = reason
    return exceptions


def count_branches(files, exceptions):
    """By folder: all branches, those that were taken, those that are excepted; and the exceptions that were met."""
    counts, met = collections.defaultdict(lambda: [0, 0, 0]), set()
    for file in files:
        name = file['file']
        source = open(name, encoding='utf-8').read().split('\n')
        for line in file['lines']:
            if line.get('gcovr/noncode') or not line['branches']:
                continue
            count = counts[name.split('/')[0]]
            missed = sum(branch['count'] <= 0 for branch in line['branches'])
            count[0] += len(line['branches'])
            count[1] += len(line['branches']) - missed
            at = line['line_number'] - 1
            text = source[at].strip()
            if missed and (name, text) in exceptions:
                count[2] += missed
                met.add((name, text))
            else: # the call may be alone on the next line
                count[2] += min(missed, len(FAILS.findall(' '.join([text, source[at + 1].strip()[:20]]))))
    return counts, met


def main():
    coverage, exceptions_path, least = sys.argv[1:]
    exceptions = read_exceptions(exceptions_path)
    counts, met = count_branches(json.load(open(coverage, encoding='utf-8'))['files'], exceptions)
    good = True
    for folder, (branches, taken, excepted) in counts.items():
        share = 100 * taken / (branches - excepted)
        reached = share >= float(least)
        good = good and reached
        print(f'| coverage | branches of {folder}: {taken} of {branches}, {excepted} excepted: {share:.1f} % | '
              f'{"reached" if reached else f"below {least} %"} |')
    for file, text in exceptions.keys() - met:
        good = False
        print(f'coverage: no exception (gone, or all taken): {file} | {text}', file=sys.stderr)
    sys.exit(not good)


main()
