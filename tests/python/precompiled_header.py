# SPDX-License-Identifier: Apache-2.0
"""Precompile the header that most modules of the Python package begin with, and print the flags that make g++ read it.

    python3 precompiled_header.py SOURCE_DIRECTORY [FLAGS...]

The header lies in build/python_headers, in a folder of its own for these flags and the state of the headers and the compiler.
Nothing is printed for other compilers than g++: modules then read the header itself. The bits do not depend on optimization,
so -O0 is the default, which compiles fastest.
"""
import fcntl
import hashlib
import os
import pathlib
import shlex
import shutil
import subprocess
import sys


def main() -> None:
    root = pathlib.Path(sys.argv[1]).resolve()
    sys.path.insert(0, str(root / "python"))
    # g++ frees no memory below a GiB, which saves some 5 % of its time.
    asked = shlex.join(sys.argv[2:] or ["-O0", "--param=ggc-min-heapsize=1048576"])
    os.environ["SUTURE_CXXFLAGS"] = asked
    from suture.backend import compiler
    from suture.errors import CompileError

    try:
        found, flags = compiler.command_for(cuda=False)
    except CompileError:
        return
    if "Free Software Foundation" not in found.version:
        return
    include = compiler.include_directory()
    key = hashlib.sha256("\n".join([compiler.header_hash(), found.path, found.version, *flags, compiler.variables()]).encode())
    all_folders = root / "build/python_headers" / hashlib.sha256(asked.encode()).hexdigest()[:8]
    folder = all_folders / key.hexdigest()[:16]
    header = folder / "suture/abi/chain.hpp.gch"
    all_folders.mkdir(parents=True, exist_ok=True)
    with open(all_folders / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not header.exists():
            for old in all_folders.iterdir():
                if old.is_dir():  # a hundred megabytes each
                    shutil.rmtree(old)
            header.parent.mkdir(parents=True)
            made = header.with_suffix(".new")
            subprocess.run([found.path, *flags, "-w", f"-I{include}", "-x", "c++-header", str(include / "suture/abi/chain.hpp"), "-o",
                            str(made)], check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)
            made.rename(header)
    print(asked, shlex.quote(f"-I{folder}"))


if __name__ == "__main__":
    main()
