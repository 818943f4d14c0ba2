# goal 4: more processes than granted
# holds: count
def attack():
    import gc

    gc.disable()
    pids = []
    try:
        for _ in range(200):
            pid = os.fork()
            if pid == 0:
                time.sleep(20)
                os._exit(0)
            pids.append(pid)
        return len(pids)
    finally:
        for pid in pids:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
