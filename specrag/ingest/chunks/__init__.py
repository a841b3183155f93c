"""From a document to chunks, and from chunks back to the document."""
