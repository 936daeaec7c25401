"""Downloads from a real web server, whole and damaged."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from orchestrator import errors
from orchestrator.disk import on_disk
from orchestrator.files import downloads
from orchestrator.files.downloads import Downloads

CONTENT = bytes(range(256)) * 2000
SUM = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
Url = Callable[[str], str]
RELEASED = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    """Serves the content, and damaged forms of it, by path."""

    def do_GET(self) -> None:
        content = CONTENT
        moved = {"/moved": "/whole", "/elsewhere": "file:///etc/passwd"}.get(self.path)
        if moved:
            self.send_response(302)
            self.send_header("Location", moved)
            self.end_headers()
            return
        if self.path == "/absent":
            self.send_error(404)
            return
        if self.path == "/flipped":
            content = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])
        self.send_response(200)
        if self.path != "/endless":
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.path in ("/cut", "/stalled"):
            content = content[:1000]
        self.wfile.write(content)
        if self.path == "/stalled":
            self.wfile.flush()
            RELEASED.wait(10)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def url() -> Iterator[Url]:
    """Yield a function that returns the address of a path on a web server of this test."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    RELEASED.clear()
    yield lambda path: f"http://127.0.0.1:{server.server_port}/{path}"
    RELEASED.set()
    server.shutdown()
    server.server_close()
    thread.join()


def fetcher(tmp_path: Path, idle_s: float = 5.0) -> Downloads:
    """Return a cache in an empty folder."""
    return Downloads(tmp_path / "downloads", lambda _: None, idle_s=idle_s)


def kept(tmp_path: Path) -> list[str]:
    """Return the names of the files in the cache."""
    return sorted(path.name for path in (tmp_path / "downloads").iterdir())


def test_a_file_is_fetched_once(tmp_path: Path, url: Url) -> None:
    """Afterwards it is in the cache under its sha256, and no server is asked; redirects count."""
    cache = fetcher(tmp_path)
    path = cache.fetch(url("moved"), SUM)
    assert path.read_bytes() == CONTENT
    assert kept(tmp_path) == [SUM.replace(":", "-")]
    assert cache.fetch("http://127.0.0.1:9/nobody-listens-there", SUM) == path


def test_progress_has_the_url_and_the_size_so_far(tmp_path: Path, url: Url) -> None:
    told: list[str] = []
    Downloads(tmp_path, told.append).fetch(url("whole"), SUM)
    assert told[-1] == f"{url('whole')}: {len(CONTENT) >> 20} MiB"


def test_without_a_known_sha256_the_file_gives_it(tmp_path: Path, url: Url) -> None:
    path, sha256 = fetcher(tmp_path).store(url("endless"), None)
    assert (path.read_bytes(), sha256) == (CONTENT, SUM)


@pytest.mark.parametrize(
    ("path", "sha256", "code", "words"),
    [
        ("flipped", SUM, "OFED-CHECKSUM", "has sha256:"),  # N08
        ("cut", SUM, "OFED-CHECKSUM", "gave 1000 of 512000 bytes"),
        ("cut", None, "OFED-CHECKSUM", "gave 1000 of 512000 bytes"),
        ("absent", SUM, "DOWNLOAD", "HTTP Error 404"),
        ("elsewhere", SUM, "DOWNLOAD", "file:///etc/passwd"),
        ("stalled", SUM, "DOWNLOAD", "timed out"),
    ],
)
def test_a_download_that_fails_leaves_no_file(
    tmp_path: Path, url: Url, path: str, sha256: str | None, code: str, words: str
) -> None:
    with pytest.raises(errors.ImageError, match=words) as refused:
        fetcher(tmp_path, idle_s=0.5).store(url(path), sha256)
    assert (refused.value.code, refused.value.exit_code) == (code, 5)
    assert kept(tmp_path) == []


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("file:///etc/passwd", "needed http"),
        ("ftp://127.0.0.1:9/x", "needed http"),
        ("http://127.0.0.1:9/x", r"http://127\.0\.0\.1:9/x .*refused"),
    ],
)
def test_a_url_without_a_web_server_is_refused(tmp_path: Path, url: str, words: str) -> None:
    with pytest.raises(errors.ImageError, match=words):
        fetcher(tmp_path).fetch(url, SUM)


def test_a_damaged_file_in_the_cache_is_fetched_again(tmp_path: Path, url: Url) -> None:
    """It is hashed before each use."""
    cache = fetcher(tmp_path)
    path = cache.fetch(url("whole"), SUM)
    path.write_bytes(CONTENT[:-1])
    assert cache.cached(SUM) is None
    assert kept(tmp_path) == []
    assert cache.fetch(url("whole"), SUM).read_bytes() == CONTENT


def test_a_file_of_a_bundle_is_copied_into_the_cache_if_it_is_whole(tmp_path: Path) -> None:
    cache, file = fetcher(tmp_path), tmp_path / "ofed.tar"
    file.write_bytes(CONTENT)
    path = cache.fetch(file, SUM)
    assert cache.cached(SUM) == path
    file.write_bytes(CONTENT[:-1])
    path.unlink()
    with pytest.raises(errors.ImageError, match="find out why it changed") as refused:
        cache.fetch(file, SUM)
    assert refused.value.code == "OFED-CHECKSUM"
    assert kept(tmp_path) == []


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A file instead of the folder, and a full disk."""
    (tmp_path / "downloads").write_text("a file where a folder is due")
    with pytest.raises(errors.LocalError, match="downloads: File exists"):
        fetcher(tmp_path).fetch("http://127.0.0.1:9/x", SUM)
    with pytest.raises(errors.StoreError, match="no space left"), on_disk(tmp_path):
        Path("/dev/full").write_bytes(b"x" * 10_000)


def test_a_whole_file_is_no_link_and_has_its_digest(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(CONTENT)
    (tmp_path / "b.tar").write_bytes(CONTENT[:-1])
    (tmp_path / "link").symlink_to(tmp_path / "a.tar")
    names = ("a.tar", "b.tar", "c.tar", "link")
    whole = [downloads.is_whole(tmp_path / name, SUM) for name in names]
    assert whole == [True, False, False, False]
