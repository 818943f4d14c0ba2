"""The tests that Jupyter has for kernels, with all that ipykernel supports and what this kernel has beside it."""

from typing import ClassVar

import jupyter_kernel_test as tests

DISPLAY = "from IPython.display import {0}, display; display({0}({1!r}))"


class Kernel(tests.KernelTests):  # type: ignore[misc]
    kernel_name = "lair"
    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('test', file=sys.stderr)"
    completion_samples: ClassVar = [{"text": "zi", "matches": {"zip"}}]
    complete_code_samples: ClassVar = [
        "1",
        "print('hello, world')",
        "def f(x):\n  return x*2\n\n\n",
        "%matplotlib inline",
    ]
    incomplete_code_samples: ClassVar = ["print('''hello", "def f(x):\n  x*2"]
    invalid_code_samples: ClassVar = ["import = 7q"]
    code_page_something = "zip?"
    code_generate_error = "raise"
    code_execute_result: ClassVar = [
        {"code": "1+2+3", "result": "6"},
        {"code": "[n*n for n in range(1, 4)]", "result": "[1, 4, 9]"},
    ]
    code_display_data: ClassVar = [
        {"code": DISPLAY.format("HTML", "<b>test</b>"), "mime": "text/html"},
        {"code": DISPLAY.format("Math", "\\frac{1}{2}"), "mime": "text/latex"},
    ]
    code_history_pattern = "1?2*"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "zip"
    code_clear_output = "from IPython.display import clear_output; clear_output()"


class Welcome(tests.IopubWelcomeTests):  # type: ignore[misc]
    kernel_name = "lair"
    support_iopub_welcome = True
