"""What runs models: loading, batches, decoding, training."""
