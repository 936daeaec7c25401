"""Wikipedia for BERT as OFRecord files, sequences of 128 tokens."""

from orchestrator.datasets import Dataset, Need, Shards, Way, ready

# BERT's reader asks for part-0 and not for part-00000: it gives no length of the number.
PARTS = Shards("", "part-", 0, 32)
DATASET = Dataset(
    name="wiki_ofrecord",
    title="Wikipedia for BERT, OFRecord",
    parts=(PARTS,),
    ways=(
        ready(PARTS),
        Way(
            title="unpacks the sample of one part",
            script="unpack.sh",
            needs=(Need("wiki_ofrecord_seq_len_128_example[.]tgz"),),
            words=("wiki_ofrecord_seq_len_128_example.tgz", PARTS.pattern),
            share=20.0,  # compressed, by how much nobody says
        ),
    ),
)
