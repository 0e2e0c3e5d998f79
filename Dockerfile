# One exact Node release for both stages. For a build that can be repeated byte for byte, pass the same
# release by digest: --build-arg NODE_IMAGE=node@sha256:... (docs/guides/kubernetes.md says how).
ARG NODE_IMAGE=node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
# Where a mirror or an authority of your own is needed, npm's configuration is mounted for this step, and written nowhere.
ARG NPM_CONFIG_CAFILE
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc --mount=type=secret,id=npm-ca \
    --mount=type=cache,target=/root/.npm \
    npm ci --ignore-scripts --no-audit --no-fund
COPY nest-cli.json tsconfig.json tsconfig.build.json ./
COPY tools/scripts/build-image-tree.mjs tools/scripts/production-packages.mjs tools/scripts/bill-of-materials.mjs tools/scripts/
COPY migrations migrations
COPY src src
ARG SOURCE_DATE_EPOCH=0
RUN node tools/scripts/build-image-tree.mjs /image

FROM ${NODE_IMAGE} AS runtime
# The service needs node alone: no package manager stays where a running container could use it, and no program that runs
# with the rights of another user. What remains of Debian is listed in /var/lib/dpkg/status, which scanners read.
RUN dpkg --log=/dev/null --purge --force-depends apt \
 && rm -rf /usr/bin/dpkg* /usr/sbin/dpkg* /usr/lib/dpkg /usr/share/dpkg /etc/apt /var/lib/apt /var/cache/* /var/log/* \
           /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
           /usr/local/bin/yarn /usr/local/bin/yarnpkg /opt/yarn-* \
 && find / -xdev -type f -perm /6000 -exec chmod a-s {} + \
 && ln -s /app/dist/src/cli.js /usr/local/bin/gamewharf
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 METRICS_PORT=9464
WORKDIR /app
# Root owns the files and the service runs as somebody else, so that it cannot change its own code.
COPY --from=build --chown=0:0 /image /app
USER 1000:1000
EXPOSE 8080 9464
STOPSIGNAL SIGTERM
# No HEALTHCHECK: images in the OCI format cannot carry one. deploy/ says for each way to run it how health is asked.
ARG NODE_IMAGE
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Gamewharf" \
      org.opencontainers.image.description="The server-side API of a game marketplace, self-hosted" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="docker.io/library/${NODE_IMAGE}"
# How V8 collects garbage: twice its own space for young objects, and none allocated old. Each is measured
# in docs/contributing/decisions/fast-requests.md. Node derives the heap limit from the memory limit of the container.
CMD ["node", "--max-semi-space-size=32", "--no-allocation-site-pretenuring", "dist/src/main.js"]
