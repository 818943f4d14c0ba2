# goal 5: give somebody outside a descriptor of ours, or be given one
def attack():
    import array

    ours, theirs = socket.socketpair()
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))]
    return first(
        # To the other end it goes, as it must; an address leads nowhere.
        lambda: ours.sendmsg([b"x"], rights, 0, OUT + "/stream") and fail(),
        lambda: ours.sendmsg([b"x"], rights, 0, "\0" + ABSTRACT) and fail(),
        # Who one is cannot be made up.
        lambda: ours.sendmsg([b"x"], [(socket.SOL_SOCKET, 2, struct.pack("3i", 1, 0, 0))]),
        lambda: ours.sendmsg([b"x"], [(socket.SOL_SOCKET, 2, struct.pack("3i", PID, os.getuid(), os.getgid()))]),
        lambda: socket.socket(fileno=os.dup(theirs.fileno())).accept(),
        lambda: socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET),
    )
