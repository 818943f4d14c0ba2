# goal 4: advice about memory that has it taken from others, shared with them, or read as broken
def attack():
    page = libc.mmap(None, 1 << 16, 3, 0x22, -1, 0)
    refused = {
        9: "MADV_REMOVE",
        12: "MADV_MERGEABLE",
        13: "MADV_UNMERGEABLE",
        20: "MADV_COLD",
        21: "MADV_PAGEOUT",
        25: "MADV_COLLAPSE",
        100: "MADV_HWPOISON",
        101: "MADV_SOFT_OFFLINE",
    }
    return unless_refused(
        *((name, [errno.EINVAL], lambda n=n: call("madvise", page, 1 << 16, n)) for n, name in refused.items()),
        *(
            (f"{name}, in the lower half", [errno.EINVAL], lambda n=n: call("madvise", page, 1 << 16, n | 1 << 32))
            for n, name in refused.items()
        ),
    )
