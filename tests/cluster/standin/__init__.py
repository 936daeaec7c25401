"""Programs that lie in the stand-in images; Python 3.6 can run them, as in the images of 2020."""
