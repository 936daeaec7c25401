"""OpenWebText as GPT's token files."""

from orchestrator.datasets import SOURCE, TARGET, Dataset, NamedFiles, Need, Tool, Way, ready

PREFIX = "gpt_sample_dataset"
FILES = NamedFiles("", (f"{PREFIX}_text_document.bin", f"{PREFIX}_text_document.idx"))
TEXT, VOCABULARY, MERGES = "openwebtext.json", "gpt2-vocab.json", "gpt2-merges.txt"
PREPROCESS = "tools/preprocess_data.py"
DATASET = Dataset(
    name="gpt",
    title="OpenWebText for GPT, Megatron's indexed files",
    parts=(FILES,),
    ways=(
        ready(FILES),
        Way(
            title=f"runs Megatron-LM's {PREPROCESS} in a container, on the text",
            script="tool.sh",
            needs=(
                *(Need(name.replace(".", "[.]")) for name in (TEXT, VOCABULARY, MERGES)),
                Need("Megatron-LM"),
            ),
            tool=Tool(
                image="ngc-pytorch-20.03",
                program=PREPROCESS,
                # No image of ours has Megatron's code: it lies with the sources.
                places=(f"{SOURCE}/Megatron-LM",),
                # Source: OneFlow-Benchmark, LanguageModeling/GPT/README.md.
                argv=(
                    *("python3", PREPROCESS, "--input", f"{SOURCE}/{TEXT}"),
                    *("--output-prefix", f"{TARGET}/{PREFIX}"),
                    *("--vocab", f"{SOURCE}/{VOCABULARY}", "--dataset-impl", "mmap"),
                    *("--tokenizer-type", "GPT2BPETokenizer"),
                    *("--merge-file", f"{SOURCE}/{MERGES}", "--append-eod"),
                ),
                total=2,
            ),
        ),
    ),
)
