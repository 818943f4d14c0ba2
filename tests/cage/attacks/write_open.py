# goal 1: open for writing, every way there is
def attack():
    return first(
        lambda: open(OUT + "/secret", "r+").write("X"),
        lambda: os.open(OUT + "/new", os.O_CREAT | os.O_WRONLY),
        lambda: os.open(OUT, os.O_TMPFILE | os.O_RDWR),
        lambda: os.truncate(OUT + "/secret", 0),
        lambda: call("creat", (OUT + "/new").encode(), 0o600),
        lambda: open(RO + "/file", "a").write("X"),
        lambda: libc_open(OUT + "/secret", os.O_WRONLY | os.O_TRUNC),
    )
