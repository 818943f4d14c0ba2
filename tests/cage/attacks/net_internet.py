# goal 3: the internet's sockets
def attack():
    return first(
        lambda: socket.create_connection(TCP, 2),
        lambda: raw_socket(socket.AF_INET, socket.SOCK_STREAM, 0),
        lambda: raw_socket(socket.AF_INET6, socket.SOCK_DGRAM, 0),
        lambda: raw_socket(socket.AF_INET, socket.SOCK_STREAM, 262),
        lambda: raw_socket(socket.AF_INET, socket.SOCK_RAW, 1),
        lambda: raw_socket(socket.AF_PACKET, socket.SOCK_RAW, 0),
        lambda: socket.getaddrinfo("example.com", 80),
    )
