"""Choose one: embedders and vector stores behind the protocols of `base`; `retriever` asks both."""
