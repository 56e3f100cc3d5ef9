#!/usr/bin/env python3
"""What check_abi.py says when headers change: test_check_abi.py COMPILER..."""
import os
import shutil
import sys
import tempfile

from check_abi import ROOT, difference, include_folders, judge, series
from description import describe

# A header, what stands there, what is put in its place, and what must be said of it.
BREAKS = [
    ("tensor", "base.h", "RAPT_FLOAT64", "RAPT_FLOAT64 = 7", "enumeration rapt_dtype: was RAPT_FLOAT64 = 1"),
    ("optim", "optimizer.h", "typedef struct rapt_adam_config {", "typedef struct rapt_adam_config { int first;",
     "structure rapt_adam_config: was 40 bytes"),  # and that of Muon, which holds one
    ("autograd", "ops.h", "rapt_add(rapt_tensor *a, ", "rapt_add(const rapt_tensor *a, ",
     "function rapt_add: was rapt_tensor * (rapt_tensor *, rapt_tensor *)"),
    ("autograd", "ops.h", "RAPT_API rapt_tensor *rapt_sub(", "rapt_tensor *rapt_sub(", "function rapt_sub: removed"),
]
ADDITION = ("tensor", "base.h", "RAPT_END_DECLS\n\n#endif", "RAPT_API void rapt_more(void);\nRAPT_END_DECLS\n\n#endif",
            "function rapt_more: new")


def changed(changes, compiler):
    """The interface of copies of the headers in which texts are replaced."""
    with tempfile.TemporaryDirectory() as copy:
        for folder in include_folders(ROOT):
            shutil.copytree(folder, os.path.join(copy, os.path.relpath(folder, ROOT)))
        for folder, name, before, after, _ in changes:
            path = os.path.join(copy, folder, "include/rapt", name)
            with open(path, encoding="utf-8") as header:
                text = header.read()
            assert before in text, f"{name} has no {before}"
            with open(path, "w", encoding="utf-8") as header:
                header.write(text.replace(before, after, 1))
        return describe(include_folders(copy), compiler)


def main(compiler):
    if not shutil.which("readelf"):
        print("skipped: readelf is not here")
        return 77
    now = describe(include_folders(ROOT), compiler)
    assert len(now) > 500, "the headers declare more than that"

    broken, added = difference(now, changed(BREAKS, compiler))
    for *_, said in BREAKS:
        assert any(line.startswith(said) for line in broken), f"not seen: {said}, but {broken}"
    assert len(broken) == len(BREAKS) + 1 and not added, (broken, added)

    more = changed([ADDITION], compiler)
    assert difference(now, more) == ([], [ADDITION[4]]), difference(now, more)
    grown = {**now, "enumeration rapt_dtype": now["enumeration rapt_dtype"] + ["RAPT_MORE = 6"]}
    assert not difference(now, grown)[0], "an enumeration may grow"

    for before, after, version, good in [(now, now, "1.2.3", True), (now, more, "1.2.3", False),
                                         (now, more, "1.2.4", True), (more, now, "1.3.0", False),
                                         (more, now, "2.0.0", True)]:
        assert judge("1.2.3", before, version, after)[1] == good, version
    assert [series(version) for version in ("0.1.0", "0.2.7", "1.2.0", "12.0.1")] == ["0.1", "0.2", "1", "12"]
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["cc"]))
