"""Object detection: DETR, and pictures in, names and boxes out."""
