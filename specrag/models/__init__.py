"""Choose one: language models behind one protocol (`base`), in process or scripted for tests."""
