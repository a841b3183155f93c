"""Choose one: a reader for each format. Bytes in, `Content` out; each hides one library."""
