# goal 4: memory and semaphores that outlive their maker
def attack():
    return first(
        lambda: call("shmget", 0, 4096, 0o1600),
        lambda: call("semget", 0, 1, 0o1600),
        lambda: call("msgget", 0, 0o1600),
        lambda: call("memfd_secret", 0),
    )
