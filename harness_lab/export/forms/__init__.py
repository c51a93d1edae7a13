"""Languages that settings are written in, each with its reader; strings are escaped for each."""
