"""Compile one of lair-kernel's own modules, when it is built: compile.py SOURCE CODE.

CODE gets four bytes, the magic number of the Python that runs this, and then the module's code.
"""

import importlib.util
import marshal
import sys
from pathlib import Path

source, target = map(Path, sys.argv[1:])
code = compile(source.read_bytes(), f"<lair>/{source.name}", "exec", dont_inherit=True, optimize=0)
target.write_bytes(importlib.util.MAGIC_NUMBER + marshal.dumps(code))
