"""Downloads from a real web server, whole and damaged."""

import hashlib
import threading
import time
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


class _Handler(BaseHTTPRequestHandler):
    """Serves the content, and its damaged forms by path."""

    def do_GET(self) -> None:
        content = CONTENT
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/whole")
            self.end_headers()
            return
        if self.path == "/elsewhere":
            self.send_response(302)
            self.send_header("Location", "file:///etc/passwd")
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
        self._send(content)

    def _send(self, content: bytes) -> None:
        if self.path == "/cut":
            content = content[:1000]
        if self.path == "/stalled":
            self.wfile.write(content[:1000])
            self.wfile.flush()
            time.sleep(1)
            return
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[Url]:
    """The address of a path on a web server of this test."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield lambda path: f"http://127.0.0.1:{server.server_port}/{path}"
    server.shutdown()
    server.server_close()
    thread.join()


def fetcher(tmp_path: Path, idle_s: float = 5.0) -> Downloads:
    """A cache in an empty folder; nobody watches."""
    return Downloads(tmp_path / "downloads", lambda _: None, idle_s=idle_s)


def kept(tmp_path: Path) -> list[str]:
    """Names of the files in the cache."""
    return sorted(path.name for path in (tmp_path / "downloads").iterdir())


def test_file_is_fetched_once(tmp_path: Path, url: Url) -> None:
    """Afterwards it lies here under its sha256, and no server is asked."""
    cache = fetcher(tmp_path)
    path = cache.fetch(url("whole"), SUM)
    assert path.read_bytes() == CONTENT
    assert kept(tmp_path) == [SUM.replace(":", "-")]
    assert cache.fetch("http://127.0.0.1:9/nobody-listens-there", SUM) == path


def test_redirect_is_followed(tmp_path: Path, url: Url) -> None:
    """Over http and https, since what counts is the sha256."""
    assert fetcher(tmp_path).fetch(url("moved"), SUM).read_bytes() == CONTENT


def test_progress_is_told_while_it_comes(tmp_path: Path, url: Url) -> None:
    """URL and size so far."""
    told: list[str] = []
    Downloads(tmp_path, told.append).fetch(url("whole"), SUM)
    assert told[-1] == f"{url('whole')}: {len(CONTENT) >> 20} MiB"


@pytest.mark.parametrize("path", ["flipped", "cut"])
def test_altered_or_cut_file_is_refused(tmp_path: Path, url: Url, path: str) -> None:
    """N08: one flipped bit or a missing end: OFED-CHECKSUM, exit 5, and nothing is kept."""
    with pytest.raises(errors.ImageError) as refused:
        fetcher(tmp_path).fetch(url(path), SUM)
    assert (refused.value.code, refused.value.exit_code) == ("OFED-CHECKSUM", 5)
    assert kept(tmp_path) == []


def test_locking_learns_what_came(tmp_path: Path, url: Url) -> None:
    """Without a known sha256 the file is trusted as it comes, and its sha256 is the answer."""
    path, sha256 = fetcher(tmp_path).store(url("endless"), None)
    assert (path.read_bytes(), sha256) == (CONTENT, SUM)


def test_locking_learns_nothing_from_half_a_file(tmp_path: Path, url: Url) -> None:
    """A lock must not hold the sha256 of a file that was cut on its way."""
    with pytest.raises(errors.ImageError, match="gave 1000 of 512000 bytes") as refused:
        fetcher(tmp_path).store(url("cut"), None)
    assert refused.value.code == "OFED-CHECKSUM"
    assert kept(tmp_path) == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("absent", "HTTP Error 404"),
        ("elsewhere", "file:///etc/passwd"),
        ("stalled", "timed out"),
    ],
)
def test_download_that_cannot_end_well_ends(
    tmp_path: Path, url: Url, path: str, words: str
) -> None:
    """Refused, elsewhere or stalled: exit 5 with the cause, and nothing is kept."""
    with pytest.raises(errors.ImageError, match=words) as refused:
        fetcher(tmp_path, idle_s=0.5).fetch(url(path), SUM)
    assert (refused.value.code, refused.value.exit_code) == ("DOWNLOAD", 5)
    assert kept(tmp_path) == []


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1:9/x"])
def test_only_web_servers_are_asked(tmp_path: Path, url: str) -> None:
    with pytest.raises(errors.ImageError, match="needed http"):
        fetcher(tmp_path).fetch(url, SUM)


def test_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The error has the URL and the system's own words."""
    with pytest.raises(errors.ImageError, match=r"http://127\.0\.0\.1:9/x .*refused"):
        fetcher(tmp_path).fetch("http://127.0.0.1:9/x", SUM)


def test_damaged_cache_is_noticed(tmp_path: Path, url: Url) -> None:
    """A file here is hashed before each use: what rotted is fetched again."""
    cache = fetcher(tmp_path)
    path = cache.fetch(url("whole"), SUM)
    path.write_bytes(CONTENT[:-1])
    assert cache.cached(SUM) is None
    assert kept(tmp_path) == []
    assert cache.fetch(url("whole"), SUM).read_bytes() == CONTENT


def test_file_of_a_bundle_is_adopted(tmp_path: Path) -> None:
    """Copied into the cache if it is what it must be, and refused if it is not."""
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


def test_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """Exit 6 with the path; no traceback of the file system."""
    (tmp_path / "downloads").write_text("a file where a folder is due")
    with pytest.raises(errors.LocalError, match="downloads: File exists"):
        fetcher(tmp_path).fetch("http://127.0.0.1:9/x", SUM)


def test_full_disk_is_told(tmp_path: Path) -> None:
    """Exit 6 and one thing to do, as for the state folder."""
    with pytest.raises(errors.StoreError, match="no space left"), on_disk(tmp_path):
        Path("/dev/full").write_bytes(b"x" * 10_000)


def test_a_whole_file_is_no_link_and_has_its_digest(tmp_path: Path) -> None:
    """A missing file, a link and other bytes are not what a bundle lists."""
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.tar").write_bytes(CONTENT)
    (tmp_path / "images" / "b.tar").write_bytes(CONTENT[:-1])
    (tmp_path / "link").symlink_to(tmp_path / "images" / "a.tar")
    names = ("images/a.tar", "images/b.tar", "images/c.tar", "link")
    whole = [downloads.is_whole(tmp_path / name, SUM) for name in names]
    assert whole == [True, False, False, False]
