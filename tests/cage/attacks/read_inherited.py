# goal 2: what was left open, and what the environment tells
def attack():
    found = []
    for name in os.environ:
        if name.startswith(("LAIR", "LD_", "SSH", "XDG", "NOTIFY", "LISTEN")) or "TOKEN" in name or "SECRET" in name:
            found.append(name)
    for fd in range(3, 4096):
        try:
            meta = os.fstat(fd)
        except OSError:
            continue
        import stat

        if stat.S_ISSOCK(meta.st_mode) and fd >= 100 or stat.S_ISFIFO(meta.st_mode) and fd >= 100:
            continue  # this interpreter's own channel and pipes
        found.append(fd)
    return found or None
