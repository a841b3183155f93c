"""Choose one: the language models behind one protocol (`base`), in process, on a server, or scripted for tests."""
