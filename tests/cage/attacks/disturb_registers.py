# goal 4: what a process of this architecture may have changed in itself, but for its thread's own register
def attack():
    import platform

    if platform.machine() != "x86_64":
        return None
    place = bytes(8)
    options = {
        0x1011: "ARCH_GET_CPUID",
        0x1012: "ARCH_SET_CPUID",
        0x1021: "ARCH_GET_XCOMP_SUPP",
        0x1022: "ARCH_GET_XCOMP_PERM",
        0x2001: "ARCH_MAP_VDSO_X32",
        0x2003: "ARCH_MAP_VDSO_64",
        0x4001: "ARCH_GET_UNTAG_MASK",
        0x4003: "ARCH_GET_MAX_TAG_BITS",
        0x5001: "ARCH_SHSTK_ENABLE",
        0x5005: "ARCH_SHSTK_STATUS",
    }
    return unless_refused(
        *((name, [errno.EINVAL], lambda n=n: call("arch_prctl", n, place)) for n, name in options.items()),
        (
            "ARCH_GET_XCOMP_SUPP, in the lower half",
            [errno.EINVAL],
            lambda: call("arch_prctl", 1 << 32 | 0x1021, place),
        ),
    )
