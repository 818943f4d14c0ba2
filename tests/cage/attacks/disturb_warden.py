# goal 4: end or stop one's own warden, and so leave something behind that nobody ends
def attack():
    warden = os.getppid()
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV, signal.SIGTERM, signal.SIGINT):
        no_error(lambda number=number: os.kill(warden, number))
        no_error(lambda number=number: call("tgkill", warden, warden, number))
        no_error(lambda number=number: child(lambda: os.kill(warden, number)))
    time.sleep(0.2)
    return None if os.getppid() == warden else "it is gone"
