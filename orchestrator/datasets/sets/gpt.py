"""OpenWebText as GPT's token files."""

from orchestrator.datasets import Dataset, NamedFiles, ready

PREFIX = "gpt_sample_dataset"
FILES = NamedFiles("", (f"{PREFIX}_text_document.bin", f"{PREFIX}_text_document.idx"))
DATASET = Dataset(
    name="gpt",
    title="OpenWebText for GPT, Megatron's indexed files",
    parts=(FILES,),
    ways=(ready(FILES),),
)
