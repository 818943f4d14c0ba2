"""Templates: what a profile may ask for, and what is said when it cannot be had."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from drive import KERNEL, SANITIZERS, Channel, Interpreter, Template, Warden


def fails(**configure: Any) -> str:
    channel = Channel()
    process = subprocess.Popen(
        [str(KERNEL), "test"],
        preexec_fn=lambda: os.dup2(channel.theirs.fileno(), 3),
        close_fds=False,
        env=SANITIZERS,
        stdin=subprocess.DEVNULL,
    )
    channel.theirs.close()
    channel.send("configure", profile="test", text_max=1000, **configure)
    reason = channel.expect("failed")["reason"]
    assert process.wait(10) == 1
    channel.ours.close()
    return str(reason)


def test_not_started_by_laird() -> None:
    done = subprocess.run([str(KERNEL)], capture_output=True)
    assert done.returncode == 2 and b"is started by laird" in done.stderr


def test_preload_that_fails(tmp_path: Path) -> None:
    assert "cannot preload nowhere: ModuleNotFoundError" in fails(preload=["nowhere"])
    assert "cannot preload this.that: ModuleNotFoundError" in fails(preload=["this.that"])


def test_python_that_is_none() -> None:
    assert "/nowhere/python: No such file" in fails(python="/nowhere/python")


def test_environment_of_another_version(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to("/usr/bin/python3")
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.7.1\n")
    assert "was made for Python 3.7.1, and this is 3." in fails(python=str(tmp_path))


# Looks through all memory that can be read, for a name that is not in it because of this code.
LOOKS = """
import ctypes, re
def there(name, size=1 << 22):
    for line in open("/proc/self/maps"):
        span, mode, rest = line.split(maxsplit=2)
        start, end = (int(x, 16) for x in span.split("-"))
        while mode[0] == "r" and "[v" not in rest and start < end:
            at = ctypes.string_at(start, min(size, end - start)).find(name[::-1])
            if at >= 0: return line
            start += size
"""


def test_who_waits_gets_a_warden_before_all_is_warmed_up() -> None:
    watched = "/var/tmp/merger-with-acme"
    with_all = Template(preload=("decimal",), hurry=True, changeable=[watched], memory=1 << 30)
    assert with_all.ready["rough"] is True and with_all.ready["version"].startswith("3.")
    first = Warden(with_all)
    interpreter = first.spawn()
    again = with_all.channel.expect("ready")
    assert "rough" not in again and again["version"] == with_all.ready["version"]
    with_all.channel.send("hurry")  # too late
    second = Warden(with_all, 2)
    for it in (interpreter, second.spawn()):
        assert it.run("import sys; 'decimal' in sys.modules").text == "True"
        assert it.run(LOOKS).returncode == 0
        assert it.run("there(b'emca-htiw-regrem')", timeout=60).text is None
        assert it.run("there(b'lamiced') is not None", timeout=60).text == "True"
        limit = it.run("import resource; resource.getrlimit(resource.RLIMIT_DATA)[0]").text
        assert int(limit or 0) > 1 << 30
    first.close()
    second.close()
    with_all.close()


def test_who_does_not_wait_any_more() -> None:
    template = Template(hurry=True)
    assert template.ready["rough"] is True
    assert "rough" not in template.channel.expect("ready")
    warden = Warden(template)
    assert warden.spawn().run("6 * 7").text == "42"
    warden.close()
    template.close()


def test_missing_is_told(science: Template) -> None:
    assert science.ready["missing"] == ["nowhere"]
    assert science.ready["version"].startswith("3.")


def test_preloaded(scientist: Interpreter) -> None:
    assert (
        scientist.run("import sys\nall(n in sys.modules for n in ('numpy', 'pandas', 'matplotlib.pyplot'))").text
        == "True"
    )
    assert scientist.run("[n for n in globals() if not n.startswith('__')]").text == "['sys']"
    code = "import numpy as np, pandas as pd\nint(pd.DataFrame({'a': np.arange(3)}).groupby('a').size().sum())"
    assert scientist.run(code).text == "3"


def test_plots(scientist: Interpreter) -> None:
    scientist.run("import os, matplotlib.pyplot as plt")
    result = scientist.run(
        "plt.plot([1, 2]); plt.title('é'); plt.savefig('x.png')\nos.path.getsize('x.png') > 1000"
    )
    assert (result.text, result.err) == ("True", b"")
    assert scientist.run(
        "os.environ['MPLCONFIGDIR'].startswith('/tmp/lair-template'), os.environ['MPLBACKEND']"
    ).text == ("(False, 'Agg')")


def test_numbers_differ(science: Template) -> None:
    code = "import numpy as np; np.random.random(), np.random.default_rng().random()"
    warden = Warden(science)
    assert warden.spawn(1).run(code).text != warden.spawn(2).run(code).text
    warden.close()


def test_numpy_draws_as_it_should(scientist: Interpreter) -> None:
    """Its generator is given new random words in each session, which it must know nothing of."""
    scientist.run("import numpy as np; kind, key, at, has_gauss, _ = np.random.get_state()")
    assert scientist.run("kind, len(set(key)) > 600, bool(key[0] == 1 << 31), at, has_gauss").text == (
        "('MT19937', True, True, 624, 0)"
    )
    assert scientist.run("bool(abs(np.random.random(100_000).mean() - 0.5) < 0.01)").text == "True"
    assert scientist.run("bool(abs(np.random.normal(size=100_000).std() - 1) < 0.02)").text == "True"
    seeded = "np.random.seed(5); np.random.random(3).tolist() == np.random.RandomState(5).random(3).tolist()"
    assert scientist.run(seeded).text == "True"


def test_one_thread(scientist: Interpreter) -> None:
    assert scientist.run("import threading; threading.active_count()").text == "1"


def test_multiprocessing(scientist: Interpreter) -> None:
    scientist.run("import multiprocessing as m\ndef f(x): return x * x")
    code = "with m.get_context('fork').Pool(2) as p: r = p.map(f, range(5))\nr"
    assert scientist.run(code).text == "[0, 1, 4, 9, 16]"
    code = "from concurrent.futures import ThreadPoolExecutor as T\nlist(T(4).map(f, range(4)))"
    assert scientist.run(code).text == "[0, 1, 4, 9]"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("venv")
    path.chmod(0o755)
    for parent in path.parents[:2]:
        parent.chmod(0o755)
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", str(path)], check=True)
    packages = next(path.glob("lib/python3.*/site-packages"))
    (packages / "only_here.py").write_text("VALUE = 7\n")
    (packages / "threaded.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(9,)).start()\n"
    )
    return path


def test_virtual_environment(environment: Path) -> None:
    template = Template(preload=("only_here",), python=str(environment))
    warden = Warden(template)
    python = warden.spawn()
    assert python.run("import only_here, sys; only_here.VALUE, sys.prefix").text == repr((7, str(environment)))
    assert python.run("sys.executable").text == repr(f"{environment}/bin/python")
    result = python.run(
        "import subprocess; subprocess.run(['python', '-c', 'import only_here, sys; print(sys.prefix)'])"
    )
    assert result.out.decode() == f"{environment}\n", result
    warden.close()
    template.close()


def test_preload_that_starts_threads(environment: Path) -> None:
    assert "has started threads" in fails(preload=["threaded"], python=str(environment))


OURS = {
    *("HOME", "PWD", "TMPDIR", "USER", "LOGNAME", "PATH", "LANG", "XDG_CACHE_HOME", "MPLCONFIGDIR", "MPLBACKEND"),
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
    *("PIP_BREAK_SYSTEM_PACKAGES", "PIP_DISABLE_PIP_VERSION_CHECK"),
}


def test_environment_variables() -> None:
    template = Template(env=["GREETING=hello=world", "OMP_NUM_THREADS=2", "nonsense"])
    warden = Warden(template)
    python = warden.spawn()
    python.run("import os")
    assert python.run("os.environ['GREETING'], os.environ['OMP_NUM_THREADS']").text == "('hello=world', '2')"
    names = set(ast.literal_eval(python.run("sorted(os.environ)").text or "None"))
    assert names - set(SANITIZERS) == OURS | {"GREETING"}
    warden.close()
    template.close()


def test_template_of_many(template: Template) -> None:
    wardens = [Warden(template, serial) for serial in range(1, 20)]
    pythons = [warden.spawn() for warden in wardens]
    for number, python in enumerate(pythons):
        python.start(f"x = {number}\nx")
    assert [python.finish().text for python in pythons] == [str(number) for number in range(19)]
    for warden in wardens:
        warden.close()
