# goal 2: what was left open, and what the environment tells
def attack():
    import stat

    found = [
        name
        for name in os.environ
        if name.startswith(("LAIR", "LD_", "SSH", "XDG_RUNTIME", "NOTIFY", "LISTEN"))
        or "TOKEN" in name
        or "SECRET" in name
    ]
    for fd in range(3, 4096):
        try:
            meta = os.fstat(fd)
        except OSError:
            continue
        null = stat.S_ISCHR(meta.st_mode) and meta.st_rdev == os.stat("/dev/null").st_rdev
        nameless = stat.S_ISREG(meta.st_mode) and meta.st_nlink == 0
        bell = stat.S_IFMT(meta.st_mode) == 0 and os.readlink(f"/proc/self/fd/{fd}") == "anon_inode:[eventfd]"
        own = fd >= 100 and (stat.S_ISSOCK(meta.st_mode) or stat.S_ISFIFO(meta.st_mode) or nameless or bell)
        if not null and not own:  # its channel, its pipes, its memory file and its warden's bell are high up
            found.append(fd)
    return found or None
