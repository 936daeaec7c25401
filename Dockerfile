# The controller: dlperf-orch itself, with the libraries of requirements.lock. `make controller`
# builds it; nodes need nothing of it. Docker's classic builder is enough.
ARG PYTHON=python:3.11-slim
FROM ${PYTHON} AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE CHANGELOG.md requirements.lock dlperf-orch.cdx.json ./
COPY orchestrator orchestrator/
COPY images images/
COPY inventory inventory/
COPY playbooks playbooks/
COPY docs docs/
# Versions of the lock without its hashes, as limits: its tools of development stay out.
RUN sed -n 's/^\([A-Za-z0-9._-]*==[^ ;\\]*\).*/\1/p' requirements.lock >limits.txt \
    && python -m venv /opt/dlperf-orch \
    && /opt/dlperf-orch/bin/pip install --no-cache-dir --constraint limits.txt . \
    && /opt/dlperf-orch/bin/dlperf-orch --version

FROM ${PYTHON}
COPY --from=build /opt/dlperf-orch /opt/dlperf-orch
ENV PATH=/opt/dlperf-orch/bin:$PATH HOME=/home/dlperf
# Playbooks, inventories and the state folder lie in /work; keys come as a read-only ~/.ssh. The home
# is open, since `docker run --user` makes it that of whoever owns those.
RUN useradd --create-home --uid 1000 dlperf && chmod 755 /home/dlperf \
    && install -d -o dlperf -g dlperf /work
USER 1000:1000
WORKDIR /work
ENTRYPOINT ["dlperf-orch"]
