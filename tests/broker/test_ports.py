import socket

from loopwarden.broker.ports import free_port


def test_the_preferred_port_is_taken_only_where_nobody_listens() -> None:
    port = free_port()
    assert free_port(port) == port
    with socket.create_server(("127.0.0.1", port)):
        other = free_port(port)
        assert other != port
        socket.create_server(("127.0.0.1", other)).close()


def test_a_listener_on_every_address_counts_as_well() -> None:
    with socket.create_server(("0.0.0.0", 0)) as listener:
        assert free_port(listener.getsockname()[1]) != listener.getsockname()[1]
