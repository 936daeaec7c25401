"""The site: what provisioning keeps, and that a file of it reads back as it was."""

from dataclasses import replace

from pydantic import TypeAdapter

from orchestrator.model.site import DataDigest, Finding, ImageRecord, NodeFacts, Site
from tests.checks.facts import FACTS, HOST

SITE = Site(
    version=2,
    cluster="testers",
    cluster_digest="d",
    inventory="/inventory/testers.yaml",
    observed_at="2020-09-15T14:28:53Z",
    nodes={
        "n1": replace(
            FACTS,
            host=replace(HOST, addresses={"ib0": ("10.0.0.1",)}),
            ofed="4.9-0.1.7.0",
            data={"imagenet": "present"},
        ),
        "n2": NodeFacts(HOST),
    },
    findings=(),
    images={
        "ngc-pytorch-20.03": ImageRecord(
            name="ngc-pytorch-20.03",
            base="nvcr.io/nvidia/pytorch:20.03-py3",
            base_digest="sha256:" + "1" * 64,
            id="sha256:" + "2" * 64,
            tag="dlperf/ngc-pytorch-20.03:3333333333333333",
            inputs_digest="3" * 64,
            code="5cc03ca",
            python="3.6.9",
            locked=True,
            ids={"n2": "sha256:" + "5" * 64},
        )
    },
    data={"imagenet": {"n1": DataDigest("/data/image", "4" * 64, 1, 2, None, None, False)}},
)


def test_site_reads_back_as_it_was_written() -> None:
    """Facts, images and digests, with what was not known."""
    adapter = TypeAdapter(Site)
    assert adapter.validate_json(adapter.dump_json(SITE)) == SITE


def test_an_image_has_an_id_on_every_node() -> None:
    """Its own, where the node's engine calls it otherwise."""
    record = SITE.images["ngc-pytorch-20.03"]
    assert [record.on(node)[7:10] for node in ("n1", "n2", "n3")] == ["222", "555", "222"]


def test_site_of_an_earlier_kind_lacks_only_what_it_could_not_know() -> None:
    """Images and data sets are then none."""
    text = (
        b'{"version": 1, "cluster": "c", "cluster_digest": "d", "inventory": "i",'
        b' "observed_at": "t", "nodes": {}, "findings": []}'
    )
    site = TypeAdapter(Site).validate_json(text)
    assert (site.images, site.data) == ({}, {})


def test_what_provisioning_alone_looks_at_is_kept_apart_too() -> None:
    """A sweep, which does not look at it again, takes it from there."""
    seen = Finding("error", "MEMLOCK", "n1", "64 KiB", "no limit", "raise it")
    between = replace(seen, code="PORT-BLOCKED")
    site = replace(SITE, findings=(replace(seen, code="BUSY"),))
    site = site.with_provisioned(seen).with_provisioned(between)
    assert [finding.code for finding in site.findings] == ["BUSY", "MEMLOCK", "PORT-BLOCKED"]
    assert site.provisioned == (seen, between)
