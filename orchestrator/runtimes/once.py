"""A value made once, by the first thread that needs it, while others wait."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Once(Generic[T]):
    """What ``make`` returns, made at the first use; what it raises is not kept.

    Python 3.11's ``cached_property`` has one lock for all objects, so a silent node would block
    all others; that of later versions has no lock.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: tuple[T, ...] = ()

    def get(self) -> T:
        """The value.

        Raises:
            Exception: what making it raised.
        """
        with self._lock:
            if not self._made:
                self._made = (self._make(),)
            return self._made[0]
