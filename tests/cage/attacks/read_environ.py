# goal 2: the policy, by the command line or the environment this process began with
def attack():
    for name in ("cmdline", "environ"):
        text = no_error(lambda name=name: open(f"/proc/self/{name}", "rb").read()) or b""
        if RO.encode() in text or b"sessions.conf" in text or b"LAIR" in text:
            return text
    return None
