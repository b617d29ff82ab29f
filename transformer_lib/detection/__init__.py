"""What stands around a detector and is no part of any chapter: how pictures are opened."""
