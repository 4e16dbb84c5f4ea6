# syntax=docker/dockerfile:1
# The server of Backsight. Build: docker build -t backsight . Run with PostgreSQL: docker compose up
FROM python:3.12-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY src src
COPY examples examples
RUN python -m venv /opt/backsight \
 && /opt/backsight/bin/pip install --no-cache-dir '.[mcp,postgres,watch]'

FROM python:3.12-slim
LABEL org.opencontainers.image.title="backsight" \
      org.opencontainers.image.description="The memory of AI trading agents" \
      org.opencontainers.image.licenses="MIT"
RUN useradd --system --uid 10001 --home-dir /data --create-home backsight
COPY --from=build /opt/backsight /opt/backsight
ENV PATH=/opt/backsight/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    MALLOC_ARENA_MAX=2 \
    BACKSIGHT_URL=sqlite:////data/store.db
USER 10001
WORKDIR /data
VOLUME ["/data"]
EXPOSE 8765
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8765/health', timeout=4)"]
ENTRYPOINT ["backsight"]
CMD ["serve", "--host", "0.0.0.0"]
