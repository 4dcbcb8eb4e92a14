"""medprobe measures what biomedical knowledge a pre-trained language model holds."""
