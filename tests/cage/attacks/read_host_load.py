# goal 2: what /proc says of the host as a whole, though no session needs it
def attack():
    files = ("softirqs", "vmstat", "zoneinfo", "buddyinfo", "cgroups", "sys/kernel/random/boot_id")
    files += (
        "pressure/cpu",
        "pressure/memory",
        "pressure/io",
        "sys/fs/file-nr",
        "sys/fs/inode-nr",
        "sys/fs/dentry-state",
    )
    files += ("irq/default_smp_affinity", "interrupts", "diskstats", "slabinfo", "locks")
    directories = ("pressure", "irq", "sys/fs")
    return first(
        *(lambda name=name: open(f"/proc/{name}").read(1) or fail() for name in files),
        *(lambda name=name: os.listdir(f"/proc/{name}") or fail() for name in directories),
        *(lambda name=name: open(f"/proc/{name}/own", "w") for name in directories),
        *(lambda name=name: os.mkdir(f"/proc/{name}/own") for name in directories),
    )
