#!/usr/bin/env python3
"""mutants.py [--since REVISION] DIRECTORY COUNT SEED [GROUP...]: plants that many bugs, one after the other, in a copy
of the sources that lies with its build in the directory, and runs the tests until one fails, crashes or takes ten
times as long as it should. What the compiler refuses or warns of, or makes the same code of, is no bug and does not
count. The library is built for one instruction-set level, small rather than fast, and only the test programs that
are run are linked with it: those of tests that are one, or a script with some; the suites docs and mpi are left out.

A bug that no test catches must be among those of mutants_survivors, with the reason why it changes nothing that can be
observed but time. DIRECTORY/results has a line of JSON for each; those in it are not tried again, unless they survived
and sources or tests have changed since. With groups of files only their share of the bugs is planted: so several
directories do it side by side, and one that is given all their results reports of all. --since plants in lines alone
that differ from a revision: what is new is tested least."""
import argparse
import collections
import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time

import mutants_places

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SETUP = ["-Dwerror=true", "-Doptimization=s", "-Dlevels=v3", "-Dtest_runner=plain", "-Dexamples=false",
         "-Dpictures=disabled", "-Dopenblas=disabled", "-Ddefault_library=static", "-Dc_args=-Wno-format-truncation"]
LIBRARIES = ["tensor/libtensor.a", "autograd/libautograd.a", "nn/libnn.a", "optim/liboptim.a"]
FAILURE = re.compile(r"\[FAIL\]|FAILED|\S+\.[ch]:\d+: ")  # a line of a test program that begins so
# First all bugs are tried with the likeliest of the tests that take less than so many seconds, then those that are left
# over with all tests.
LONG, LIKELIEST = 5, 12
COUNTED = ("caught", "left over", "survived")
# By the wall clock, beside ten times its usual time of the processor: a busy machine, or one that is suspended for a
# while, is no bug.
PATIENCE = 900
MEMORY, FILE_SIZE = 8 << 30, 1 << 30  # of a test, so that a bug does not take the machine's


def say(*words):
    print("mutants:", *words, file=sys.stderr, flush=True)


def changed_lines(revision):
    """For each file the numbers of the lines that differ from a revision of git."""
    lines, file = collections.defaultdict(set), None
    done = subprocess.run(["git", "diff", "--unified=0", revision, "--"], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    if done.returncode:
        sys.exit(f"mutants: git knows no revision {revision}: {done.stderr.strip()}")
    for line in done.stdout.splitlines():
        if line.startswith("+++ b/"):
            file = line[len("+++ b/"):]
        found = re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)
        if found:
            first, count = int(found[1]), int(found[2] or 1)
            lines[file].update(range(first, first + count))
    return lines


class Results:
    """Lines of JSON, by some of their values: the last word counts."""

    def __init__(self, path, keys):
        self.path, self.keys = path, keys
        self.of = {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for line in file:
                    one = json.loads(line)
                    self.of[self.key(one)] = one

    def key(self, one):
        return tuple(one[key] for key in self.keys)

    def add(self, **one):
        self.of[self.key(one)] = one
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(one, ensure_ascii=False) + "\n")

    def counted(self, group=None, results=COUNTED):
        return [r for r in self.of.values() if r["result"] in results and group in (None, r["group"])]


class Test:
    """A test program, or a script with programs, with its usual time in seconds of the processor."""

    def __init__(self, listed, programs, build):
        self.name = listed["name"]
        self.command = listed["cmd"]
        self.programs = programs
        self.targets = [os.path.relpath(program, build) for program in programs]
        self.environment = {**os.environ, **listed["env"], "OMP_NUM_THREADS": "1"}
        self.build = build
        self.built = self.seconds = None

    def run(self):
        """What went wrong, or None, and the seconds that it took. Ends at the first failure that is told of."""
        allowed = 1000 if self.seconds is None else int(10 * self.seconds) + 2

        def limit():
            for what, most in ((resource.RLIMIT_CPU, allowed), (resource.RLIMIT_AS, MEMORY),
                               (resource.RLIMIT_FSIZE, FILE_SIZE), (resource.RLIMIT_CORE, 0)):
                resource.setrlimit(what, (most, most))

        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = subprocess.Popen(self.command, env=self.environment, cwd=self.build, preexec_fn=limit,
                                   start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, errors="replace")
        hangs = []

        def end():
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

        watch = threading.Timer(PATIENCE + 20 * allowed, lambda: (hangs.append(True), end()))
        watch.daemon = True
        watch.start()
        failure = None
        try:
            for line in process.stderr:
                if FAILURE.match(line):
                    failure = line.strip()
                    break
        finally:
            end()
            process.stderr.close()
            status = process.wait()
            watch.cancel()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        if hangs:
            failure = "hangs"
        elif not failure and status not in (0, 77):
            failure = f"ends with {status}"
        return failure, used.ru_utime + used.ru_stime - begin.ru_utime - begin.ru_stime


class Mutants:
    def __init__(self, directory, count, seed, groups, since):
        self.directory, self.seed = os.path.abspath(directory), seed
        self.changed = changed_lines(since) if since else None
        shares = {group: share for group, (share, _) in mutants_places.SHARES.items() if not groups or group in groups}
        self.shares, self.count = shares, count * sum(shares.values()) // 300
        self.tree, self.build = os.path.join(self.directory, "tree"), os.path.join(self.directory, "build")
        os.makedirs(self.tree, exist_ok=True)
        self.files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True,
                                    check=True).stdout.splitlines()
        self.copy()
        self.state = self.state_of_tree()
        self.results = Results(os.path.join(self.directory, "results"), ("file", "before", "after"))
        with open(os.path.join(HERE, "mutants_survivors"), encoding="utf-8") as file:
            self.explained = {tuple(line.split(" | ")[:3]) for line in file if not line.startswith("#")}
        self.tests = []
        self.objects = {}

    def copy(self):
        """Brings the copy of the tree up to date, which also takes back a bug that a killed run left there."""
        for file in self.files:
            source, target = os.path.join(ROOT, file), os.path.join(self.tree, file)
            with open(source, "rb") as opened:
                content = opened.read()
            if os.path.exists(target):
                with open(target, "rb") as opened:
                    if opened.read() == content:
                        continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as opened:
                opened.write(content)
            os.chmod(target, os.stat(source).st_mode)

    def state_of_tree(self):
        """A number for what is built of it."""
        state = hashlib.sha256()
        for file in self.files:
            if file.endswith((".c", ".h", ".def")):
                state.update(self.digest(os.path.join(self.tree, file)).encode())
        return state.hexdigest()[:16]

    def ninja(self, targets):
        return subprocess.run(["ninja", "-j1", "-C", self.build, *targets], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode == 0

    def object_files(self):
        for folder in ("tensor", "autograd", "nn", "optim"):
            for path, _, names in os.walk(os.path.join(self.build, folder)):
                yield from (os.path.join(path, name) for name in names if name.endswith(".o"))

    @staticmethod
    def digest(path):
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def digests(self, paths):
        return " ".join(self.digest(path)[:16] for path in paths)

    def introspect(self, what):
        with open(os.path.join(self.build, "meson-info", f"intro-{what}.json"), encoding="utf-8") as file:
            return json.load(file)

    @staticmethod
    def targets_of(tests):
        return sorted({target for test in tests for target in test.targets})

    def prepare(self):
        """Builds, and runs each test once without a bug, for its time; one that fails so is left out."""
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            subprocess.run(["meson", "setup", self.build, self.tree, *SETUP], check=True, stdout=subprocess.DEVNULL)
        programs = {path for target in self.introspect("targets") if target["type"] == "executable"
                    for path in target["filename"]}
        left_out = {"rapt:docs", "rapt:mpi"}  # suites
        listed = [Test(one, [part for part in one["cmd"] if part in programs], self.build)
                  for one in self.introspect("tests")
                  if programs & set(one["cmd"]) and not left_out & set(one["suite"])]
        say("builds")
        if not self.ninja(self.targets_of(listed)):
            sys.exit(f"mutants: the build fails; ninja -C {self.build}")
        self.objects = {path: self.digest(path) for path in self.object_files()}
        times = Results(os.path.join(self.directory, "times"), ("name", "program"))
        for test in listed:
            test.built = self.digests(test.programs)
            if (test.name, test.built) not in times.of:
                failure, seconds = test.run()
                times.add(name=test.name, program=test.built, seconds=-1 if failure else seconds)
                if failure:
                    say(f"{test.name} is left out: {failure}")
            test.seconds = times.of[test.name, test.built]["seconds"]
        self.tests = [test for test in listed if test.seconds >= 0]
        say(f"{len(self.tests)} test programs take {sum(test.seconds for test in self.tests):.0f} s")

    def ordered(self, bug):
        """The tests, those first that are likely to catch the bug in little time: that have its file's name, or have
        caught others in its file or its folder."""
        folder = os.path.dirname(bug.file)
        by_file, by_folder = collections.Counter(), collections.Counter()
        for one in self.results.counted(results=("caught",)):
            by_file[one["test"]] += one["file"] == bug.file
            by_folder[one["test"]] += os.path.dirname(one["file"]) == folder

        def chance(test):
            known = 3 * len(self.shared_words(bug, test)) + 4 * by_file[test.name] + by_folder[test.name]
            return (0.05 + known) / (0.3 + min(test.seconds, 3))

        return sorted(self.tests, key=chance, reverse=True)

    @staticmethod
    def shared_words(bug, test):
        words = set(re.split(r"[_/.]", bug.file.replace("kernels", "kernel").replace("matmul", "products")))
        return words & set(test.name.split("_"))

    def likeliest(self, bug):
        return [test for test in self.ordered(bug) if test.seconds < LONG or self.shared_words(bug, test)][:LIKELIEST]

    def run_tests(self, left):
        """Which of the tests fails and how, or None twice."""
        together = 1
        while left:
            now, left = left[:together], left[together:]
            together = min(2 * together, 16)
            if not self.ninja(self.targets_of(now)):
                sys.exit(f"mutants: the tests are not linked; ninja -C {self.build}")
            for test in now:
                if self.digests(test.programs) == test.built:
                    continue  # it has no part of the library that the bug is in
                failure, _ = test.run()
                if failure:
                    return test.name, failure
        return None, None

    def is_same_code(self, begin):
        """Of those that were compiled anew."""
        return all(self.digest(path) == self.objects[path] for path in self.object_files()
                   if os.stat(path).st_mtime_ns >= begin)

    def try_one(self, bug, tests, otherwise):
        """What is noted of a bug that these tests don't catch is the last argument."""
        path = os.path.join(self.tree, bug.file)
        with open(path, encoding="utf-8") as file:
            source = file.read()
        begin, clock = time.time_ns(), time.monotonic()
        test = failure = None
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(source[:bug.begin] + bug.text + source[bug.end:])
            if not self.ninja(LIBRARIES):
                result = "does not compile"
            elif self.is_same_code(begin):
                result = "same code"
            elif bug[:1] + bug[-2:] in self.explained:
                result = "survived"
            else:
                test, failure = self.run_tests(tests)
                result = "caught" if test else otherwise
        finally:
            with open(path, "w", encoding="utf-8") as file:
                file.write(source)
        self.results.add(file=bug.file, line=bug.line, group=bug.group, kind=bug.kind, before=bug.before,
                         after=bug.after, result=result, test=test, failure=failure,
                         seconds=round(time.monotonic() - clock, 1), state=self.state)
        if result in COUNTED:
            say(f"{len(self.results.counted())}. {bug.file}:{bug.line}: {result}", f"by {test}" if test else
                f"\n    {bug.before}\n    {bug.after}")

    def drawn(self):
        """For each group all that can be planted, in the order in which they are."""
        bugs = mutants_places.all_bugs(self.tree, self.files, self.seed)
        if self.changed is None:
            return bugs
        return {group: [bug for bug in bugs[group] if bug.line in self.changed[bug.file]] for group in bugs}

    def run(self):
        bugs = self.drawn()
        left = {group: [bug for bug in reversed(bugs[group]) if bug[:1] + bug[-2:] not in self.results.of]
                for group in self.shares}
        while sum(len(self.results.counted(group)) for group in left) < self.count and any(left.values()):
            group = min((group for group in left if left[group]),
                        key=lambda g: (len(self.results.counted(g)) + 1) / self.shares[g])
            bug = left[group].pop()
            self.try_one(bug, self.likeliest(bug), "left over")
        for bug in [bug for group in self.shares for bug in bugs[group]]:
            one = self.results.of.get(bug[:1] + bug[-2:])
            if not one or self.results.key(one) in self.explained:
                continue
            if one["result"] == "left over" or (one["result"] == "survived" and one["state"] != self.state):
                self.try_one(bug, self.ordered(bug), "survived")

    def report(self):
        """The row of the table; are all survivors explained?"""
        counted = self.results.counted()
        survivors = self.results.counted(results=("left over", "survived"))
        unexplained = [one for one in survivors if self.results.key(one) not in self.explained]
        kinds, groups = (collections.Counter(one[what] for one in counted) for what in ("kind", "group"))
        caught = len(counted) - len(survivors)
        real = len(counted) - (len(survivors) - len(unexplained))
        for one in unexplained:
            say(f"not caught: {one['file']} | {one['before']} | {one['after']}")
        print(f"| mutants | {len(counted)} planted bugs ({', '.join(f'{kinds[k]} {k}' for k in sorted(kinds))}; "
              f"{', '.join(f'{groups[g]} in {g}' for g in mutants_places.SHARES)}), seed {self.seed} | {caught} of "
              f"{real} caught ({100 * caught / max(real, 1):.1f} %); {len(counted) - real} change nothing but time |")
        return not unexplained


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(": ", 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", metavar="REVISION")
    parser.add_argument("directory")
    parser.add_argument("count", type=int)
    parser.add_argument("seed")
    parser.add_argument("groups", nargs="*", help="of " + ", ".join(mutants_places.SHARES))
    arguments = parser.parse_args()
    unknown = set(arguments.groups) - set(mutants_places.SHARES)
    if unknown:
        parser.error(f"there is no group {', '.join(sorted(unknown))}; {', '.join(mutants_places.SHARES)} expected")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit("mutants: stopped; the same command goes on"))
    mutants = Mutants(**vars(arguments))
    mutants.prepare()
    mutants.run()
    sys.exit(not mutants.report())


if __name__ == "__main__":
    main()
