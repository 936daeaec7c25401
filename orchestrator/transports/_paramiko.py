"""paramiko's transport, with one bug worked around and the server's messages kept."""

import threading
from typing import Any

import paramiko

from orchestrator.deadlines import ANSWER_S

CHANNEL_CLOSE = 97  # RFC 4254, 9


def _handle_close(channel: Any, message: Any) -> None:
    """Handle the other side's close of a channel; the owner's ``close`` answers.

    paramiko itself answers at once, while another thread may be about to send on that channel.
    For a message to a channel that is gone sshd ends the whole connection, and by then its
    number may even belong to another command.
    """
    channel._handle_eof(message)
    with channel.lock:
        channel.eof_sent = True  # nothing more is sent, and nobody waits to send
        channel.out_buffer_cv.notify_all()
    channel.event.set()
    channel.status_event.set()


class Answered(threading.Event):
    """An event set by sshd's answer to a channel request; paramiko alone would wait for ever."""

    def wait(self, timeout: float | None = ANSWER_S) -> bool:
        """Wait for the answer.

        Raises:
            TimeoutError: none came.
        """
        if not super().wait(timeout):
            raise TimeoutError
        return True


def wake(channel: Any) -> None:
    """Tell the thread that reads from a channel that no more comes; never waits."""
    channel.in_buffer.close()


class Spoken(paramiko.Transport):  # type: ignore[misc]  # paramiko has no types
    """A transport that keeps what the server sends and paramiko only logs.

    ``offered`` holds the server's algorithms, ``farewell`` its message when it disconnects,
    ``signature`` the algorithm that paramiko chose for an RSA key.
    """

    farewell = ""
    offered: dict[str, list[str]] | None = None
    _agreed_pubkey_algorithm = ""
    _channel_handler_table = {  # noqa: RUF012  # paramiko's own, never changed
        **paramiko.Transport._channel_handler_table,
        CHANNEL_CLOSE: _handle_close,
    }

    @property
    def signature(self) -> str:
        """The algorithm that an RSA key has signed with; empty for other keys."""
        return self._agreed_pubkey_algorithm

    def _parse_disconnect(self, message: Any) -> None:
        message.get_int()
        self.farewell = message.get_text()

    def _parse_kex_init(self, message: Any) -> None:
        self.offered = self._really_parse_kex_init(paramiko.Message(message.asbytes()))
        super()._parse_kex_init(message)
