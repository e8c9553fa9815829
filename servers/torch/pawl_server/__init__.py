"""A training and sampling server for language models, on PyTorch; see ../README.md."""
