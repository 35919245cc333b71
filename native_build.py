"""Compiles the broker's hot modules to machine code with mypyc: in place for a checkout, or into a wheel.

Theory of operation
-------------------
The source stays Python, and Python runs it wherever nobody has compiled it.  mypyc makes C of the modules named below;
beside each ``.py`` lies then a library of the same name, which the interpreter prefers.  All code is in one library, so
that modules call each other without a detour, and the library beside a module only opens it.

A library that is older than its source would run code that nobody can read any more.  So the digests of the sources
are written down beside the libraries, and ``import tieline`` refuses if they differ (:mod:`tieline.native`).

``python native_build.py`` compiles in place, ``python native_build.py --remove`` undoes it, and a wheel is compiled if
``TIELINE_COMPILE=1`` is set while it is built (``hatch_build.py``).
"""

from __future__ import annotations

import ast
import os
import shutil
import sys
import sysconfig
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import module_from_spec, spec_from_file_location
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from setuptools import Extension

ROOT: Final = Path(__file__).parent
SOURCE: Final = ROOT / "src"
#: Where C, objects and what mypy knows are kept, so that the second build takes less time than the first.
WORKSHOP: Final = ROOT / "build" / "native"
LIBRARIES: Final = WORKSHOP / "lib"
#: Compiled code needs nothing of this when it runs.
TOOLS: Final = ("mypy[mypyc]>=1.14",)
#: Nobody outside replaces or calls a function of the library by its name, so calls inside it need no detour through a
#: table, and the compiler may look into them.
CLOSED: Final = ("-fvisibility=hidden", "-fno-semantic-interposition", "-fno-plt")

#: What is compiled: all that a packet touches between two system calls.
COMPILED: Final = (
    "wire/*.py",
    "sched/*.py",
    "match/trees.py",
    "match/cover/filters.py",
    "core/*.py",
    "core/durable/*.py",
    "core/figures/*.py",
    "core/inbound/*.py",
    "core/outbound/*.py",
    "core/routing/*.py",
    "overlay/*.py",
    "overlay/*/*.py",
    "net/layer.py",
    "net/link.py",
    "net/listener.py",
    "net/loop.py",
    "net/outq.py",
    "net/peers.py",
    "net/pump.py",
    "net/tls.py",
    "net/turns.py",
    "net/urgent.py",
)
#: What stays Python among these, and why.  Whatever no pattern names stays Python because it is not hot, or because
#: numpy or numba does its work.
INTERPRETED: Final = {
    "overlay/interests/digests.py": "its cells are one more kind of condition, and conditions are not compiled",
    "**/__init__.py": "a package is opened by Python",
    "core/ports.py": "isinstance() asks its protocols at run time, which mypyc's classes cannot answer",
    "overlay/ring/*.py": "what it sums up are conditions and digests, and those are not compiled",
    # everybody.py is compiled: it is a receiver like others, whose class is, and that has no heir in Python
    "overlay/ring_member/[!e]*.py": "the same, and the ring that it drives",
    "overlay/sessions/errands.py": "msgspec reads the types of its fields at run time",
    "overlay/agreeing/*.py": "its words are msgspec's structs, whose options mypyc drops",
    "overlay/plans.py": "the same",
}


class CannotCompile(Exception):
    """What is missing, as a whole sentence."""


def modules() -> list[Path]:
    """The modules to compile, relative to the source, in a fixed order."""
    package = SOURCE / "tieline"
    chosen = {file for pattern in COMPILED for file in package.glob(pattern)}
    spared = {file for pattern in INTERPRETED for file in package.glob(pattern)}
    return sorted(file.relative_to(SOURCE) for file in chosen - spared)


def sources() -> list[str]:
    """What the libraries are made of: the modules, and those they import from, whose constants they may contain."""
    names = {str(module.relative_to("tieline")) for module in modules()}
    for module in modules():
        for node in ast.walk(ast.parse((SOURCE / module).read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "tieline":
                place = "/".join(node.module.split(".")[1:])
                candidates = [place, *(f"{place}/{alias.name}" for alias in node.names)]
                names.update(f"{name}.py" for name in candidates if (SOURCE / "tieline" / f"{name}.py").exists())
    return sorted(names)


def build() -> list[Path]:
    """Compile; the libraries, at the places in the workshop that they have in the source."""
    if "CC" not in os.environ and shutil.which("cc") is None and shutil.which("gcc") is None:
        raise CannotCompile("There is no C compiler here; on Debian: apt-get install gcc libc6-dev.")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        raise CannotCompile("Python's headers are missing; on Debian: apt-get install python3-dev.")
    try:
        from mypyc.build import mypycify
    except ImportError as problem:
        raise CannotCompile(f"mypyc is missing ({problem}): pip install '{TOOLS[0]}'.") from None
    WORKSHOP.mkdir(parents=True, exist_ok=True)
    os.chdir(ROOT)
    os.environ["MYPYPATH"] = str(SOURCE)
    # types are the business of `make check`; here, libraries may be missing that a broker has when it runs
    options = ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent", "--explicit-package-bases"]
    said = StringIO()
    try:
        with redirect_stdout(said), redirect_stderr(said):  # dozens of hints on what would be faster
            extensions = mypycify(
                [*options, f"--cache-dir={WORKSHOP / 'types'}", *(str(Path("src", module)) for module in modules())],
                opt_level="2",
                debug_level="0",
                multi_file=True,  # one C file for each module, for as many compilers as there are processors
                target_dir=str(WORKSHOP / "c"),
                group_name="tieline",
            )
    except SystemExit:
        raise CannotCompile(f"mypyc refuses the source:\n{said.getvalue()}") from None
    return _make(extensions)


def _make(extensions: Iterable[Extension]) -> list[Path]:
    """Compile and link; an object that is newer than everything it is made of is kept."""
    from distutils import ccompiler
    from distutils import sysconfig as build_settings

    import setuptools  # noqa: F401 - brings distutils, which Python has lost

    compiler: Any = ccompiler.new_compiler()
    build_settings.customize_compiler(compiler)
    headers = max((file.stat().st_mtime for file in (WORKSHOP / "c").rglob("*.h")), default=0.0)
    include = sysconfig.get_path("include")

    def compiled(source: str, extension: Extension) -> str:
        """The object of a C file."""
        (target,) = compiler.object_filenames([source], output_dir=str(WORKSHOP / "o"))
        made = Path(target).stat().st_mtime if Path(target).exists() else 0.0
        if made <= max(headers, Path(source).stat().st_mtime):
            compiler.compile(
                [source],
                output_dir=str(WORKSHOP / "o"),
                include_dirs=[*extension.include_dirs, include],
                extra_postargs=[*extension.extra_compile_args, *CLOSED],
            )
        return str(target)

    def linked(extension: Extension, objects: list[str]) -> Path:
        place = Path(*extension.name.split("."))
        library = LIBRARIES / place.with_name(place.name + str(sysconfig.get_config_var("EXT_SUFFIX")))
        compiler.link_shared_object(objects, str(library))
        return library

    shutil.rmtree(LIBRARIES, ignore_errors=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        pending = [
            (extension, [pool.submit(compiled, source, extension) for source in extension.sources])
            for extension in extensions
        ]
        made = [pool.submit(linked, extension, [each.result() for each in objects]) for extension, objects in pending]
        return [each.result() for each in made]


def compile_in_place() -> None:
    """Put the libraries beside their sources."""
    before = sources()
    libraries = build()
    remove()
    name, text = native().record(before)
    # first the record: a library without one could become stale unseen
    (SOURCE / "tieline" / name).write_text(text)
    for library in libraries:
        shutil.copy(library, SOURCE / library.relative_to(LIBRARIES))


def remove() -> None:
    """Back to plain Python; last the record, as above."""
    found = [*SOURCE.glob("tieline*.so"), *SOURCE.glob("tieline/**/*.so"), *SOURCE.glob("tieline/native.*.sha256")]
    for file in found:
        file.unlink()


def native() -> ModuleType:
    """The module that knows the record, loaded from its file: ``import tieline`` may be refused."""
    spec = spec_from_file_location("native", SOURCE / "tieline" / "native.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Compile in place, or undo it."""
    if "--remove" in sys.argv[1:]:
        remove()
        return
    try:
        compile_in_place()
    except CannotCompile as problem:
        sys.exit(
            f"{problem}\n"
            "Nothing was compiled, and nothing is lost but speed: plain Python does all that the broker does."
        )
    print(f"Compiled {len(modules())} modules of the broker; 'make uncompile' goes back to plain Python.")


if __name__ == "__main__":
    main()
