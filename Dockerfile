# The course for a class: `docker build -t gpututor .`, then
# `docker run --init -p 2718:2718 --user "$(id -u)" -v ~/class:/class gpututor` with the class in ~/class/roster.csv.
# See docs/workshop.md.
FROM python:3.11-slim

# learners' code is checked in a sandbox
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap \
    && rm -rf /var/lib/apt/lists/*

# the CPU build of torch: a tenth of the other's size, and the course needs no GPU; another index can be named
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
COPY pyproject.toml constraints.txt README.md LICENSE /src/
COPY gpututor /src/gpututor
COPY lessons /src/lessons
COPY data /src/data
RUN pip install --no-cache-dir --extra-index-url "$TORCH_INDEX" -c /src/constraints.txt /src \
    && rm -rf /src

RUN mkdir /class && chown 1000 /class
USER 1000
WORKDIR /class
VOLUME /class
# any user may be given to `docker run`, so nothing is kept in a home folder but what may be lost
ENV HOME=/tmp OMP_NUM_THREADS=1
EXPOSE 2718
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:2718/health', timeout=5)"]
ENTRYPOINT ["gpututor"]
CMD ["workshop", "--roster", "/class/roster.csv", "--state", "/class/state", "--host", "0.0.0.0"]
