# `make` lists all targets.
SHELL := /bin/sh
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

sources := $(shell find src -name '*.ts' ! -name '*.test.ts' 2>/dev/null) build.mjs package-lock.json
example := dist/images/hello.tar

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

.PHONY: run
run: setup build $(example) ## set up, build, and run a single-node cluster on this machine; Ctrl-C stops it
	@bin/run $(ARGS)

.PHONY: demo
demo: setup build $(example) ## the same unattended: deploy the example with kubectl, show it, clean up
	@node src/acceptance/cluster/demo.ts

.PHONY: setup
setup: packages ## install what is missing: npm packages; as root on Debian also containerd, runc and CNI plugins
	@bin/setup host

.PHONY: packages
packages:
	@bin/setup packages

.PHONY: build
build: packages dist/svc ## build dist/svc: all programs in one file, for hosts with Node

dist/svc: $(sources)
	@node build.mjs

.PHONY: debug
debug: packages ## dist/debug/svc: not minified, with source maps for a debugger (docs/development.md)
	@node build.mjs --debug --out dist/debug

$(example): src/acceptance/cluster/example-image.ts $(wildcard testdata/examples/hello/*)
	@node src/acceptance/cluster/example-image.ts $@

.PHONY: binary
binary: packages ## build dist/svc-linux-x64 and -arm64: the same with Node, for hosts without it
	@node build.mjs --binary

# The tests need only the executable of this machine.
native_binary := dist/svc-linux-$(if $(filter aarch64,$(shell uname -m)),arm64,x64)
$(native_binary): $(sources)
	@node build.mjs --binary --arch=$(patsubst dist/svc-linux-%,%,$@)

.PHONY: check
check: packages ## check types, style, floating promises, unused code, shell scripts; a minute at most
	tsc --noEmit
	biome check --config-path=.ci --error-on-warnings src build.mjs bin
	oxlint --type-aware --config .ci/oxlint.json src build.mjs
	knip --config .ci/knip.json
	@if command -v shellcheck >/dev/null; then shellcheck bin/run bin/setup .ci/run; else echo "shellcheck is not installed: scripts are not checked"; fi

.PHONY: test
test: packages build $(native_binary) $(example) ## run the unit tests, then those of whole clusters if root and containerd are available; the longest are in `make long`
	@SVC_KUBECTL=ends node bin/test.mjs unit e2e

.PHONY: unit
unit: packages ## run the unit tests only; nine minutes
	@node bin/test.mjs unit

.PHONY: e2e
e2e: packages build $(native_binary) $(example) ## run the tests of whole clusters only: svc up, containerd, kubectl
	@node bin/test.mjs e2e

.PHONY: long
long: packages build $(native_binary) $(example) ## run the longest tests of whole clusters, which `make test` leaves out
	@node bin/test.mjs long

.PHONY: kubectl
kubectl: packages ## run all cases of every kubectl; `make test` runs those of the oldest and the newest
	@for cases in src/acceptance/kubectl/*.test.ts; do \
		SVC_KUBECTL=all tap run --reporter=silent --timeout=1800 $$cases || exit 1; done

.PHONY: bench
bench: packages build $(example) ## measure this machine: objects, requests, watches, memory, start, pods (ARGS="--only requests")
	@if [ -z "$(ARGS)" ]; then node --expose-gc src/api/core/pod/pod.bench.ts && node src/api/every-kind/schemas.bench.ts && \
	  node --expose-gc src/cel/cel.bench.ts && node src/registry/apply.bench.ts && \
	  node src/apiserver/metrics/metrics.bench.ts && node src/apiserver/authentication/authentication.bench.ts && node src/apiserver/authorization/authorization.bench.ts && \
	  node src/apiserver/fairness/fairness.bench.ts && \
	  node src/apiserver/admission/admission.bench.ts && node src/apiserver/assembly/audit.bench.ts && \
	  node src/tracing/tracing.bench.ts && node src/auth/authz/rbac/rbac.bench.ts && node --expose-gc src/proxy/proxy.bench.ts && \
	  node --expose-gc src/network-policy/network-policy.bench.ts; fi
	@node src/bench/bench.ts $(ARGS)

.PHONY: recorded-agent
recorded-agent: setup ## replay the pods recorded with a Kubernetes 1.33 agent; fails on regressions; ten minutes (ARGS="probes env")
	@node src/acceptance/cluster/recorded-agent/replay.ts $(ARGS)

.PHONY: conformance
conformance: packages build $(example) ## show Kubernetes' conformance behaviours on a svc up in a network namespace; a quarter of an hour (ARGS="ConfigMap Secrets")
	@node src/acceptance/conformance/run.ts $(ARGS)

.PHONY: faults
faults: setup ## inject faults at every step of a pod's lifecycle, and run the lifecycle suite on containerd; two minutes
	@SVC_FAULTS=all tap run --reporter=silent --timeout=900 src/acceptance/agent/faults.test.ts src/acceptance/cluster/faults.test.ts
	@SVC_LIFECYCLE=all tap run --reporter=silent --timeout=900 src/acceptance/agent/lifecycle.test.ts

.PHONY: leaks
leaks: packages build ## repeat what must leave nothing in memory 1,000 times, and measure a server after a load; minutes
	@for file in $$(find src -name 'retention.test.ts'); do SVC_LEAK_ROUNDS=1000 tap run --reporter=terse --timeout=900 $$file || exit 1; done

.PHONY: durability
durability: packages ## kill an API server 300 times under load, and cut its power 4000 times; every acknowledged write must be there; half an hour (docs/durability.md)
	@SVC_DURABILITY_KILLS=$${SVC_DURABILITY_KILLS:-300} node src/acceptance/server/durability.test.ts
	@SVC_POWER_CUTS=$${SVC_POWER_CUTS:-4000} node src/acceptance/server/power-cuts.test.ts
	@SVC_MAINTENANCE_CUTS=$${SVC_MAINTENANCE_CUTS:-100} node src/acceptance/server/interrupted-maintenance.test.ts
	@SVC_FAILED_SYNC_CUTS=$${SVC_FAILED_SYNC_CUTS:-200} node src/acceptance/server/failing-disk.test.ts

.PHONY: soak
soak: packages build ## mixed load for hours, with memory, open files and disk flat (docs/durability.md; SVC_SOAK_MINUTES=240)
	@SVC_PROGRAM=bundle SVC_SOAK_MINUTES=$${SVC_SOAK_MINUTES:-240} node src/acceptance/server/soak.test.ts

.PHONY: scale
scale: packages build ## how many hollow nodes and pods an API server carries; ten minutes (docs/scale.md; ARGS="--store etcd")
	@node src/bench/scale.ts $(ARGS)

.PHONY: linearizability
linearizability: packages ## check histories of concurrent clients, also through faults of servers and of etcd; ten minutes (docs/durability.md)
	@for histories in linearizability faulty-histories; do \
	  SVC_HISTORY_ROUNDS=$${SVC_HISTORY_ROUNDS:-10} SVC_HISTORY_FAULTS=$${SVC_HISTORY_FAULTS:-8} \
	  node src/acceptance/server/$$histories.test.ts || exit 1; done

.PHONY: damage
damage: packages ## damage each file of the embedded store in thousands of ways, and open it; five minutes (docs/durability.md)
	@SVC_DAMAGE_ROUNDS=$${SVC_DAMAGE_ROUNDS:-100} node src/storage/level/verify/damage.test.ts

.PHONY: attacks
attacks: packages ## send long lists in every field, and the costliest requests; prints the longest stalls; half an hour
	@SVC_ATTACKS=all node src/acceptance/attacks/stalls.test.ts
	@SVC_ATTACKS=all node src/acceptance/attacks/controller-stalls.test.ts
	@SVC_ATTACKS=all node src/acceptance/attacks/expensive-expressions.test.ts
	@SVC_ATTACKS=all node src/acceptance/attacks/extension-servers.test.ts
	@node src/acceptance/attacks/small-chunks.test.ts
	@SVC_ATTACKS=all node src/acceptance/attacks/agent-stalls.test.ts
	@SVC_ATTACKS=all node src/acceptance/attacks/long-lists.test.ts

.PHONY: mutants
mutants: packages ## withhold each flag, field and gate from the test of its effect, which must fail; minutes (ARGS="max-pods,v"; SVC_MUTANTS_PART=0/4)
	@SVC_MUTANTS="$(if $(ARGS),$(ARGS),all)" tap run --reporter=terse --timeout=3600 src/acceptance/flag-effects/mutants.test.ts

.PHONY: fuzz
fuzz: packages ## fuzz the parsers, each for a minute (ARGS="--seconds 600 --seed 1")
	@for reader in schema/json/json schema/json/json-path schema/yaml/yaml schema/protobuf/protobuf schema/cbor/cbor schema/structural/load cel/cel http/spdy/spdy dns/dns; do node src/$$reader.fuzz.ts $(ARGS) || exit 1; done

.PHONY: docs
docs: packages ## generate the pages docs/flags-*.md, docs/doctor.md and docs/conformance.md
	node src/up/commands/write-reference.ts
	node src/acceptance/conformance/write-page.ts

.PHONY: format
format: packages ## format the sources
	biome check --config-path=.ci --write src build.mjs bin

.PHONY: clean
clean: ## remove the build output
	rm -rf dist .tap
