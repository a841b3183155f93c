# One container for one machine without an accelerator; also runs as a Docker Space (uid 1000, port 7860).
#
#   docker build -t specrag .
#   docker run -p 7860:7860 specrag
#
# The weights are fetched while the image is built, so the container starts without a network. Models on servers
# and a Chroma server are settings like all others: -e SPECRAG_DRAFTER_URL=... ; compose.yaml starts them too.

FROM python:3.12-slim

# On x86 the package index hands out a CUDA build of torch, several gigabytes that a CPU cannot use. Pass the
# address of an index of CPU builds to leave them out: --build-arg TORCH_INDEX=ADDRESS. Empty takes the default.
ARG TORCH_INDEX=""

RUN useradd --create-home --uid 1000 user && install -d -o user -g user /home/user/app
WORKDIR /home/user/app

# Packages first: they change less often than the code. torch goes before the rest so that the rest finds it.
COPY requirements.txt .
RUN if [ -n "$TORCH_INDEX" ]; then \
        PIP_INDEX_URL="$TORCH_INDEX" pip install --no-cache-dir "$(grep '^torch' requirements.txt | cut -d' ' -f1)"; \
    fi \
    && pip install --no-cache-dir -r requirements.txt

USER user
ENV HOME=/home/user \
    PYTHONUNBUFFERED=1 \
    GRADIO_ANALYTICS_ENABLED=False \
    SPECRAG_HOME=/home/user/specrag \
    SPECRAG_HOST=0.0.0.0 \
    SPECRAG_PORT=7860

# The program without app.py and assets: a change to those does not fetch the weights again.
COPY --chown=user specrag specrag
RUN python -m specrag weights pull

COPY --chown=user . .

# No model hub is asked at the start. To use a model of the hub, run with HF_HUB_OFFLINE=0.
ENV HF_HUB_OFFLINE=1

# A named volume keeps documents and traces, and Docker fills a new one with the weights of the image:
# -v specrag:/home/user/specrag. A bound folder of the host hides them; they are then fetched at the first start.
EXPOSE 7860
HEALTHCHECK --interval=30s --timeout=5s --start-period=180s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:7860/health', timeout=4)"]
CMD ["python", "app.py"]
