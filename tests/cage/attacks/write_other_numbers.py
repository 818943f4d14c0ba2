# goal 1: the same calls by the numbers of another architecture
def attack():
    import mmap
    import platform

    if platform.machine() != "x86_64":
        return None
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    low = libc.mmap(ctypes.c_void_p(0x10000), ctypes.c_size_t(4096), 3, 0x32, -1, ctypes.c_long(0))
    if low & 0xFFFFFFFF != 0x10000:
        return None
    ctypes.memmove(0x10000, (OUT + "/secret").encode() + b"\0", len(OUT) + 8)
    # eax = 5 (open), ebx = path, ecx = O_RDWR; int 0x80; ret
    code.write(b"\x53\xb8\x05\0\0\0\xbb\0\0\x01\0\xb9\x02\0\0\0\xba\0\0\0\0\xcd\x80\x5b\xc3")
    run = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    return child(lambda: run() if run() >= 0 else None) or no_error(
        lambda: number(0x40000000 + 2, b"/etc/hosts", 2)
    )
