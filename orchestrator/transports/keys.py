"""Key pairs made for one attempt, in the form that OpenSSH reads."""

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.hazmat.primitives.serialization import PublicFormat as Public


def generate() -> tuple[str, str]:
    """Generate an Ed25519 pair: the private key, and the public key in a line without comment."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, Public.OpenSSH)
    return private.decode(), public.decode()
