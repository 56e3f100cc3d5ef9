#!/usr/bin/env python3
"""The Python package's tables of functions and structs against the headers, and its installation by pip."""
import ctypes
import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile

from harness import passed, rapt, root, test
from rapt import _attention, _convolution, _library, _losses, _models, _optimizer, _structs, library


@test
def the_table_of_functions_is_that_of_the_headers():
    headers = "".join(open(path, encoding="utf-8").read() for path in glob.glob(f"{root}/*/include/rapt/*.h"))
    declared = dict()
    declaration = r"^RAPT_API ([^()]*?)\b(rapt_\w+)\(((?:[^()]|\([^()]*\))*)\)"
    for result, name, parameters in re.findall(declaration, headers, re.M):
        declared[name[5:]] = (result.strip(), parameters)

    def kind_of(text):
        text = " ".join(text.replace("const ", "").split())
        for pattern, kinds in ((r"rapt_tensor \*\w*$", "to"),
                               (r"rapt_tensor \*\*\w+$|rapt_tensor \*const \*\w+$", "Tp"),
                               (r"double( \w+)?$", "d"), (r"bool( \w+)?$", "b"),
                               (r"uint64_t( \w+)?$", "lu"), (r"int64_t( \w+)?$|size_t$", "l"),
                               (r"rapt_scope( \w+)?$", "m"),
                               (r"rapt_dtype( \w+)?$", "yi"), (r"rapt_(reduction|error_code)( \w+)?$", "ri"),
                               (r"rapt_activation( \w+)?$", "f"),
                               (r"int( \w+)?$|rapt_error_code$", "i"), (r"char \*\w*$", "z"), (r"void$", "v")):
            if re.match(pattern, text):
                return kinds
        return "p" if "*" in text or "[" in text or "handler" in text else "?"

    def check(name, result, kinds):
        found, parameters = declared[name]
        assert result in kind_of(found), (name, result, found)
        parts = [] if parameters == "void" else re.split(r",(?![^(]*\))", parameters)
        for kind in kinds:
            if kind in "sTa":
                assert kind_of(parts.pop(0).strip()) == "i", (name, kinds)
                assert "*" in parts.pop(0), (name, kinds)
            else:
                part = parts.pop(0).strip()
                assert part == "..." or kind in kind_of(part), (name, kind, part)
        assert not parts or parts == [" ..."], (name, parts)

    for result, name, *kinds in _library.entries(_library.FUNCTIONS):
        check(name, result, "".join(kinds))
    for name, *parameters in _library.entries(_library.OPS):
        kinds = [parameter.split(":")[1][0] for parameter in parameters]
        if name in _library.DTYPE_FIRST:
            kinds.insert(0, kinds.pop())
        check(name, "t", kinds)


@test
def every_op_of_the_header_is_there():
    """None is left out: one that has to be gets its name here, with the reason."""
    with open(f"{root}/autograd/include/rapt/ops.h", encoding="utf-8") as header:
        declared = re.findall(r"^RAPT_API [^()]*?\brapt_(\w+)\(([^,()]*)", header.read(), re.M)
    assert len(declared) > 120
    missing = [name for name, _ in declared if not callable(getattr(rapt, name, None))]
    assert not missing, missing
    of_tensors = [name for name, first in declared if re.match(r"rapt_tensor \*\w+$", first)]
    assert len(of_tensors) > 100
    missing = [name for name in of_tensors if not callable(getattr(rapt.Tensor, name, None))]
    assert not missing, missing


@test
def structs_have_the_fields_of_the_headers():
    headers = "".join(open(path, encoding="utf-8").read() for path in glob.glob(f"{root}/*/include/rapt/*.h"))
    headers = re.sub(r"/\*.*?\*/", "", headers, flags=re.S)
    kinds = {"double": ctypes.c_double, "bool": ctypes.c_bool, "int64_t": ctypes.c_int64, "int": ctypes.c_int,
             "rapt_schedule_kind": ctypes.c_int, "rapt_schedule_curve": ctypes.c_int, "rapt_reduction": ctypes.c_int,
             **_optimizer.STRUCTS}

    def inside(name, what="struct"):
        return re.search(rf"typedef {what} {name} \{{(.*?)\}}", headers, re.S).group(1)

    left_out = {"rapt_mask": {"rule"}, "rapt_transformer_config": {"scoring", "context"}}
    for struct in (_attention.MASK, _attention.HEADS, _models.TRANSFORMER, _models.GPT_CONFIG, _models.GENERATION):
        declared = re.sub(r"\(\*(\w+)\)\([^()]*\)", r"\1", inside(struct.name))
        for kind, name in re.findall(r"(rapt_rotary_scaling) (\w+);", declared):  # its fields stand for it
            fields = re.sub(r"\b(?=\w+[,;])", f"{name}_", inside(kind))
            declared = declared.replace(f"{kind} {name};", fields)
        named = {name for line in declared.split(";") for name in re.findall(r"\w+", line)[1:]}
        assert named - struct.fields.keys() == left_out.get(struct.name, set()), named
    enumerations = {name: words for name, (_, words) in _structs.WORDS.items()}
    enumerations |= {"rapt_schedule_kind": _optimizer.SCHEDULES, "rapt_schedule_curve": _optimizer.CURVES,
                     "rapt_reduction": _library.REDUCTIONS, "rapt_activation": _library.ACTIVATIONS}
    for name, words in enumerations.items():
        declared = re.findall(r"RAPT_\w+", inside(name, "enum"))
        assert all(value.endswith("_" + word.upper()) for value, word in zip(declared, words, strict=True)), declared
    for name, struct in {**_optimizer.STRUCTS, **_convolution.STRUCTS, **_losses.STRUCTS}.items():
        fields = []
        for declaration in inside(name).split(";"):
            kind, *names = re.findall(r"\*?\w+(?:\[2\])?", declaration) or [None]
            fields += [(n.lstrip("*").removesuffix("[2]"), ctypes.c_void_p if n[0] == "*" else
                        kinds[kind] * 2 if n.endswith("[2]") else kinds[kind]) for n in names]
        assert fields == struct._fields_, f"{name}: {fields}"


@test
def pip_installs_it():
    with open(os.path.join(root, "meson.build"), encoding="utf-8") as build:
        version = re.search(r"version: '([^']+)'", build.read()).group(1)
    with open(os.path.join(root, "python", "pyproject.toml"), encoding="utf-8") as project:
        assert f'version = "{version}"' in project.read()
    if not all(map(importlib.util.find_spec, ("pip", "setuptools", "wheel"))):
        print("left out: installation by pip (one of pip, setuptools, wheel is not there)")
        return
    with tempfile.TemporaryDirectory() as directory:
        source, target = os.path.join(directory, "source"), os.path.join(directory, "target")
        shutil.copytree(os.path.join(root, "python"), source)
        run = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation",
               "--disable-pip-version-check", "--root-user-action=ignore", "--target", target, source]
        subprocess.run(run, check=True)
        program = "import rapt; print(rapt.ones((2, 2)).sum().item(), rapt.__file__)"
        environment = {**os.environ, "PYTHONPATH": target, "RAPT_LIBRARY": library._name}
        run = subprocess.run([sys.executable, "-c", program], env=environment, cwd=directory, check=True, text=True,
                             stdout=subprocess.PIPE)
        assert run.stdout.split() == ["4.0", os.path.join(target, "rapt", "__init__.py")], run.stdout


print(f"{len(passed)} tests passed")
