"""A machine as people write it: hosts, users and ports."""

import pytest

from orchestrator.model.text import Endpoint, parse_endpoint


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("gpu01", Endpoint("gpu01")),
        ("u@gpu01:3322", Endpoint("gpu01", "u", 3322)),
        ("[fd00::1]:22", Endpoint("fd00::1", port=22)),
        ("[FD00:0:0::1]", Endpoint("fd00::1")),
        ("me@fd00::1", Endpoint("fd00::1", "me")),
        ("fe80::1%eth0", Endpoint("fe80::1%eth0")),
        ("::ffff:10.0.0.1", Endpoint("10.0.0.1")),
        ("GPU01.Lab:22", Endpoint("GPU01.Lab", port=22)),
    ],
)
def test_hosts_are_parsed(text: str, endpoint: Endpoint) -> None:
    """Addresses are never cut at a colon; names keep their case."""
    assert parse_endpoint(text) == endpoint
    assert parse_endpoint(str(endpoint)) == endpoint


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("", "needed an IP address or a host name"),
        ("10.0.0.256", "needed an IP address or a host name"),
        ("224.0.0.1", "needed an IP address or a host name"),
        ("fe80::1%;reboot", "needed host:port, or [address]:port for IPv6"),
        ("fd00::g", "needed host:port, or [address]:port for IPv6"),
        ("gpu01:0", "the port from 1 to 65535"),
        ("gpu01:65536", "the port from 1 to 65535"),
        ("[fd00::1]22", "needed host:port"),
        ("gpu_01", "no '_'; give its IP address"),
        ("\u00fcber", "needed an IP address or a host name"),
        ("gpu01.lab.", "needed an IP address or a host name"),
        ("-l@gpu01", "needed [user@]host[:port]"),
        ("@gpu01", "needed [user@]host[:port]"),
        ("a@b@gpu01", "needed [user@]host[:port]"),
    ],
)
def test_what_is_no_host_is_refused(text: str, needed: str) -> None:
    """With what was needed."""
    with pytest.raises(ValueError, match="; needed ") as refused:
        parse_endpoint(text)
    assert needed in str(refused.value)
