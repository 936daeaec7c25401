"""A small shell on the node that is kept: a gate opens at one message."""

from orchestrator.transports import Stream
from orchestrator.transports._sftp import Lost

# A FIFO that is opened for reading too makes nobody wait for a reader; what was opened is looked at
# again by its descriptor. No process is started for it, so that gates of many nodes open together.
SCRIPT = """
while IFS= read -r path && IFS= read -r line; do
    if [ -p "$path" ] && [ ! -L "$path" ] && command exec 4<>"$path" 5>>"$path" 4<&-; then
        trap '' PIPE
        [ -p /proc/self/fd/5 ] && printf '%s\\n' "$line" >&5
        echo $?
        trap - PIPE
        exec 5>&-
    else
        echo 1
    fi 2>/dev/null
done
"""


class Feeder:
    """This end of the shell's stream; for one thread at a time."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def feed(self, path: str, line: bytes) -> bool:
        """Write a line into a FIFO; False if nobody reads it.

        Raises:
            Lost: the shell has gone; the line may or may not have been written.
        """
        text = line.removesuffix(b"\n")
        if b"\n" in text or b"\0" in text or "\n" in path:
            raise ValueError("needed one line and a path without line breaks")
        self._stream.sendall(path.encode() + b"\n" + text + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            piece = self._stream.recv(16)
            if not piece:
                raise Lost("the shell that feeds FIFOs has ended")
            answer += piece
        return answer == b"0\n"
