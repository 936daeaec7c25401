"""Names of types that nobody looks at."""

FLOAT = INTERP_LINEAR = NCHW = RGB = None
