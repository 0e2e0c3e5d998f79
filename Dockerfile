# One exact Node release for both stages. For a build that can be repeated byte for byte, pass the same
# release by digest: --build-arg NODE_IMAGE=node@sha256:... (docs/operations.md says how).
ARG NODE_IMAGE=node:24.11.1-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY nest-cli.json tsconfig.json tsconfig.build.json ./
COPY tools/scripts/build-image-tree.mjs tools/scripts/
COPY migrations migrations
COPY src src
ARG SOURCE_DATE_EPOCH=0
RUN node tools/scripts/build-image-tree.mjs /image

FROM ${NODE_IMAGE} AS runtime
LABEL org.opencontainers.image.title="Gamewharf" \
      org.opencontainers.image.description="The server-side API of a game marketplace, self-hosted" \
      org.opencontainers.image.licenses="MIT"
# The service needs node alone: no package manager stays where a running container could use it.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
           /usr/local/bin/yarn /usr/local/bin/yarnpkg /opt/yarn-*
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 METRICS_PORT=9464
WORKDIR /app
# Root owns the files and the service runs as somebody else, so that it cannot change its own code.
COPY --from=build --chown=0:0 /image /app
USER 1000:1000
EXPOSE 8080 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health/live`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# How V8 collects garbage: twice its own room for young objects, a bound for old ones, and none born old. Each is
# measured in docs/decisions/fast-requests.md.
CMD ["node", "--max-semi-space-size=32", "--max-old-space-size=1024", "--no-allocation-site-pretenuring", "dist/src/main.js"]
