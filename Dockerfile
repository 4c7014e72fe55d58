# docker build --tag millpond .
# docker run --rm --volume ./site:/site --publish 8080:8080 millpond
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/src/target --mount=type=cache,target=/usr/local/cargo/registry \
    cargo build --locked --release --package millpond && \
    objcopy --strip-debug target/release/millpond /millpond

FROM debian:bookworm-slim
RUN apt-get update && \
    apt-get install --yes --no-install-recommends ca-certificates && \
    rm -rf /var/lib/apt/lists/* && \
    useradd --uid 10001 --home-dir /site --shell /usr/sbin/nologin millpond && \
    install -d -o millpond -g millpond /site
COPY --from=build /millpond /usr/local/bin/millpond
USER millpond
WORKDIR /site
VOLUME /site
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --start-period=60s --interval=10s --timeout=5s \
    CMD ["millpond", "explain", "/", "--admin", "127.0.0.1:9180"]
ENTRYPOINT ["millpond"]
CMD ["serve", "/site", "--listen", "0.0.0.0:8080", "--admin-listen", "127.0.0.1:9180"]
