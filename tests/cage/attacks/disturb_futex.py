# goal 4: mutexes that lend their priority, whose part of the kernel has been a way in more than once
def attack():
    word = ctypes.create_string_buffer(16)
    operations = {
        2: "FUTEX_FD",
        6: "FUTEX_LOCK_PI",
        7: "FUTEX_UNLOCK_PI",
        8: "FUTEX_TRYLOCK_PI",
        11: "FUTEX_WAIT_REQUEUE_PI",
        12: "FUTEX_CMP_REQUEUE_PI",
        13: "FUTEX_LOCK_PI2",
    }

    def go(operation):
        return call("futex", word, operation, 0, None, word, 0)

    return unless_refused(
        *(
            (f"{name} {flags:x}", [errno.ENOSYS], lambda n=n, flags=flags: go(n | flags))
            for n, name in operations.items()
            for flags in (0, 128, 256, 384, 1 << 32)
        )
    )
