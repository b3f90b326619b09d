# fenec: make targets. `make` alone explains them.

GO        ?= go
VERSION   ?= $(shell sed -n 's/^var version = "\(.*\)"/\1/p' main.go)
FUZZTIME  ?= 20s
TESTFLAGS ?=
TOOL       = $(GO) tool -modfile=tools.mod
PACKAGES   = ./...

.DEFAULT_GOAL := help
.PHONY: help build up test race check fuzz bench image

help: ## show this
	@echo 'fenec, a document database split by tenant'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build ./fenec, one static binary
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o fenec .

up: build ## start a router and two nodes on loopback, with a tenant to try
	./fenec up

test: ## run every test
	$(GO) test -shuffle=on $(TESTFLAGS) $(PACKAGES)

race: ## run every test under the race detector
	$(GO) test -race -shuffle=on $(PACKAGES)

check: ## vet, staticcheck, gofumpt, the layout, go.mod
	$(GO) vet $(PACKAGES)
	$(TOOL) staticcheck $(PACKAGES)
	@unformatted=$$($(TOOL) gofumpt -l $$(git ls-files '*.go')); \
		if [ -n "$$unformatted" ]; then echo "gofumpt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) test -run 'Layout|ImportsPointOneWay' .
	$(GO) mod tidy -diff

fuzz: ## run each fuzz target for FUZZTIME (20s)
	@grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's|^(.*)/[^/]*:func (Fuzz.*)$$|\1 \2|' | sort | \
	while read -r package target; do \
		echo "== $$package $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$package" || exit 1; \
	done

bench: ## measure beside peers, as ratios in one run
	cd bench && $(GO) run -tags sqlite_fts5 .

image: ## build the container image fenec:VERSION
	docker build --build-arg VERSION=$(VERSION) -t fenec:$(VERSION) .
