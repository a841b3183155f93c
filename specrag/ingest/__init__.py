"""From an uploaded file to chunks in the store: `loaders` -> `chunking` -> `index`; `jobs` for the page."""
