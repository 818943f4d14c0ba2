# goal 1: make, rename, link and remove names
def attack():
    return first(
        lambda: os.mkdir(OUT + "/d"),
        lambda: os.rename(OUT + "/secret", OUT + "/moved"),
        lambda: os.rename(RW + "/own", OUT + "/moved"),
        lambda: os.link(OUT + "/secret", "linked"),
        lambda: os.link("own", OUT + "/linked"),
        lambda: os.symlink("x", OUT + "/symlink"),
        lambda: os.unlink(OUT + "/secret"),
        lambda: os.rmdir(OUT),
        lambda: os.mkfifo(OUT + "/fifo"),
        lambda: os.unlink(RO + "/file"),
    )
