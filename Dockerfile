# The project and what it needs, without an accelerator.
#   docker build --tag medprobe .
#   docker run --init --rm --volume "$PWD/work:/work" medprobe init mine
# `--init` gives the container a first process that ends what a command leaves behind.
FROM python:3.11-slim-bookworm
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git=1:2.39.* \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 medprobe \
    && install --directory --owner medprobe /work
# pip reads this address where it is given: an index with PyTorch's smaller builds for processors
ARG PIP_EXTRA_INDEX_URL
WORKDIR /opt/medprobe
COPY requirements.lock requirements-tools.lock ./
RUN pip install --no-cache-dir --requirement requirements.lock --requirement requirements-tools.lock
COPY . .
RUN pip install --no-cache-dir --no-deps .
USER 1000
WORKDIR /work
ENTRYPOINT ["medprobe"]
CMD ["--help"]
