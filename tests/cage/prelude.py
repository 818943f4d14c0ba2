# What every attack has at hand. It runs inside the session, ahead of the attack, after a line that sets the names of
# what there is to attack. It first takes the audit hook away, as any attacker would: what is tested is the kernel's
# refusal.
import ctypes
import errno
import os
import select
import signal
import socket
import struct
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_long

NEWER = {
    "openat2": 437,
    "mount_setattr": 442,
    "memfd_secret": 447,
    "fchmodat2": 452,
    "setxattrat": 463,
    "file_setattr": 469,
}


def remove_hook():
    "Empty the runtime's list of C hooks: three words {next, function, data}, the function one of the executable's."
    near = ctypes.cast(libc.audit_install, ctypes.c_void_p).value
    runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    reading, writing = os.pipe()
    for offset in range(0, 8192, 8):
        entry = ctypes.c_void_p.from_address(runtime + offset).value
        if entry and entry % 8 == 0 and libc.write(writing, ctypes.c_void_p(entry), 24) == 24:
            _, function, data = struct.unpack("3Q", os.read(reading, 24))
            if data == 0 and abs(function - near) < 1 << 17:
                ctypes.c_void_p.from_address(runtime + offset).value = None
    os.close(reading)
    os.close(writing)
    sys.audit("os.kill", -1, 0)


def fail():
    raise OSError(errno.EPERM, "no")


def no_error(go):
    try:
        return go()
    except (OSError, ValueError, RuntimeError, OverflowError, MemoryError):
        return None


def first(*ways):
    "What got through, or None."
    for i, go in enumerate(ways):
        try:
            return f"way {i}: {go()!r}"
        except (OSError, ValueError, RuntimeError, OverflowError, MemoryError, ImportError) as error:
            if getattr(error, "sqlite_errorcode", None) is None and isinstance(error, ImportError):
                raise
        except Exception as error:
            if type(error).__module__ != "sqlite3":
                raise
    return None


def unless_refused(*acts):
    "Each is (what it is, the errnos a refusal has, a function): the first that was not refused with one of them."
    for what, errors, go in acts:
        try:
            return f"{what}: {go()!r}"
        except OSError as error:
            if error.errno not in errors:
                return f"{what}: {error}"
    return None


def number(n, *args):
    result = libc.syscall(ctypes.c_long(n), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def call(name, *args):
    "A system call by name, past libc."
    n = NEWER.get(name)
    if n is None:
        n = ctypes.CDLL("libseccomp.so.2").seccomp_syscall_resolve_name(name.encode())
    if n < 0:
        raise OSError(errno.ENOSYS, name)
    return number(n, *args)


def libc_checked(result):
    return result if result >= 0 else fail()


def libc_open(path, flags):
    return libc_checked(libc.open(path.encode(), flags))


def unix_address(path):
    return struct.pack("H108s", socket.AF_UNIX, path.encode())


def raw_socket(family, kind, protocol):
    return libc_checked(libc.socket(family, kind, protocol))


def child(go, seconds=20):
    "What it returns in a child process; an error if that failed, died or hung."
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, repr(go()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    ready = select.select([reading], [], [], seconds)[0]
    text = os.read(reading, 4096).decode() if ready else ""
    os.close(reading)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    if text in ("", "None"):
        fail()
    return text
