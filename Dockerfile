# One image for every role: FENEC_ROLE=node, or `docker run fenec --role shard ...`.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=0.1.0
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /fenec . && mkdir -p /empty/data

FROM scratch
COPY --from=build /fenec /fenec
COPY --from=build --chown=65532:65532 /empty/data /data
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 8081 8090
ENTRYPOINT ["/fenec"]
