"""One file per target."""
