# goal 2: watch what others do
def attack():
    import fcntl

    return first(
        lambda: call("inotify_init1", 0),
        lambda: call("inotify_init"),
        *(lambda number=number: call("inotify_add_watch", number, b"/", 0x20) for number in range(200)),
        lambda: call("fanotify_init", 0, 0),
        lambda: fcntl.fcntl(os.open(".", os.O_RDONLY), fcntl.F_NOTIFY, 2),
        lambda: fcntl.fcntl(os.open("own", os.O_CREAT | os.O_RDONLY), fcntl.F_SETLEASE, 0),
    )
