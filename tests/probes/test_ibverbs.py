"""Adapters that programs can open, and OFED: real outputs and what is made of them."""

import pytest

import tests
from orchestrator import errors, words
from orchestrator.model.facts import VerbsFacts
from orchestrator.probes import infiniband

SAMPLES = tests.SAMPLES / "ibverbs"
NO_DRIVER = (
    "libibverbs: Warning: no userspace device-specific driver found for"
    " /sys/class/infiniband_verbs/uverbs"
)


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ("deepep_issue55_excerpt.txt", VerbsFacts(("mlx5_3",), ())),
        ("ompi_pr6184_verbose_excerpt.txt", VerbsFacts(("mlx5_1",), ())),
        ("rdma_device_plugin_issue8.txt", VerbsFacts(("mlx4_2",), ("Failed to open device",))),
        ("pib_issue2_no_driver.txt", VerbsFacts((), (f"{NO_DRIVER}1", f"{NO_DRIVER}0"))),
        (
            "caffe_issue590_list.txt",
            VerbsFacts((), tuple(f"{NO_DRIVER}{number}" for number in (4, 3, 2, 1, 0))),
        ),
    ],
)
def test_adapters_are_those_that_were_opened(sample: str, expected: VerbsFacts) -> None:
    """A driver that is missing leaves an adapter out, and the library says so."""
    assert infiniband.parse_verbs((SAMPLES / sample).read_text()) == expected


def test_no_adapter_at_all_is_an_answer() -> None:
    """Said by the program itself."""
    assert infiniband.parse_verbs("No IB devices found\n") == VerbsFacts((), ())
    assert infiniband.parse_verbs("0 HCAs found:\n") == VerbsFacts((), ())


@pytest.mark.parametrize("text", ["", "Welcome\n", "transport: InfiniBand (0)\n"])
def test_text_of_something_else_is_refused(text: str) -> None:
    """An empty text does not mean that there are no adapters."""
    with pytest.raises(errors.LogError, match="no line like hca_id") as raised:
        infiniband.parse_verbs(text)
    assert raised.value.code == "UNREADABLE"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MLNX_OFED_LINUX-4.9-0.1.7.0:\n", "4.9-0.1.7.0"),
        ("OFED-internal-24.07-0.3.5.0.110:\n", "24.07-0.3.5.0.110"),
        ("", None),
        ("sh: 1: ofed_info: not found\n", None),
        ("MLNX_OFED_LINUX-4.9-0.1.7.0: MLNX_OFED_LINUX-5.3-1.0.0.1:\n", None),
    ],
)
def test_version_of_ofed_is_the_one_that_it_prints(text: str, expected: str | None) -> None:
    """Two versions are none."""
    assert infiniband.ofed_version(text) == expected


def test_versions_of_ofed_are_ordered_by_their_numbers() -> None:
    """4.9 is older than 5.3, and 5.9 than 5.10."""
    assert words.version_key("4.9-0.1.7.0") < words.version_key("5.3-1.0.0.1")
    assert words.version_key("5.9-0.5.6.0") < words.version_key("5.10-0.1.0.0")
