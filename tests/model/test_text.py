"""Hosts, users and ports as people write them; names."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.model.text import HOST, USER, Endpoint, is_name, parse_endpoint

ADDRESSES = st.ip_addresses().filter(lambda address: not address.is_multicast)
HOSTS = st.one_of(
    st.from_regex(HOST, fullmatch=True).filter(lambda host: not host.replace(".", "").isdecimal()),
    ADDRESSES.map(lambda at: str(getattr(at, "ipv4_mapped", None) or at)),
)
USERS = st.none() | st.from_regex(USER, fullmatch=True)


@given(st.builds(Endpoint, HOSTS, USERS, st.none() | st.integers(1, 65535)))
def test_a_written_endpoint_is_read_as_it_was(endpoint: Endpoint) -> None:
    assert parse_endpoint(str(endpoint)) == endpoint


@given(st.ip_addresses(v=6).filter(lambda address: not address.is_multicast))
def test_an_ipv6_address_is_read_in_any_spelling(address: ipaddress.IPv6Address) -> None:
    """No colon of it is taken for the one before a port."""
    expected = str(address.ipv4_mapped or address)
    for text in (address.exploded.upper(), f"[{address.exploded}]:22"):
        assert parse_endpoint(text).host == expected


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("u@gpu01:3322", Endpoint("gpu01", "u", 3322)),
        ("[FD00:0:0::1]", Endpoint("fd00::1")),
        ("me@fd00::1", Endpoint("fd00::1", "me")),
        ("fe80::1%eth0", Endpoint("fe80::1%eth0")),
        ("::ffff:10.0.0.1", Endpoint("10.0.0.1")),
        ("GPU01.Lab:22", Endpoint("GPU01.Lab", port=22)),
    ],
)
def test_an_endpoint_has_a_host_a_user_and_a_port(text: str, endpoint: Endpoint) -> None:
    assert parse_endpoint(text) == endpoint


@pytest.mark.parametrize(
    ("needed", "texts"),
    [
        (
            "needed an IP address or a host name",
            ("", "10.0.0.256", "224.0.0.1", "\u00fcber", "gpu01.lab."),
        ),
        (
            "needed host:port, or [address]:port for IPv6, the port from 1 to 65535",
            ("fe80::1%;reboot", "fd00::g", "gpu01:0", "gpu01:65536", "[fd00::1]22"),
        ),
        ("no '_'; give its IP address", ("gpu_01",)),
        ("needed [user@]host[:port]", ("-l@gpu01", "@gpu01", "a@b@gpu01")),
    ],
)
def test_a_text_that_is_no_endpoint_is_refused(needed: str, texts: tuple[str, ...]) -> None:
    for text in texts:
        with pytest.raises(ValueError, match="; needed ") as refused:
            parse_endpoint(text)
        assert needed in str(refused.value)


@pytest.mark.parametrize(
    ("name", "fits"),
    [("rn50-amp", True), ("a1", True), ("a", False), ("-a", False), ("a/b", False)],
)
def test_a_name_has_letters_digits_and_few_signs(name: str, *, fits: bool) -> None:
    assert is_name(name) == fits
