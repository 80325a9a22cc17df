# Two commands do all the set-up on a fresh Debian or Ubuntu machine with git, make and python3:
#   make demo    virtual nodes up, converge, second run, reboot, drift, verify
#   make test    everything
DISTRO ?= bookworm
export DISTRO
BIN := .venv/bin
# molecule looks for its tools on PATH.
export PATH := $(CURDIR)/$(BIN):$(PATH)
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

.PHONY: setup packages lint unit lab lab-down lab-ssh demo fabric molecule dnf test test-lab test-slow test-drivers test-storage test-trixie bench lock clean

setup: packages .venv/ready

# What apt brings is not asked for again; the list is read by tests/lab as well.
packages:
	@missing=$$(grep -vE '^(#|$$)' tests/lab/packages.txt | xargs -n1 sh -c 'dpkg-query -W -f "\$${db:Status-Abbrev}" "$$0" 2>/dev/null | grep -q ^ii || echo "$$0"'); \
	if [ -n "$$missing" ]; then \
		$(SUDO) apt-get -q update && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends $$missing; \
	fi

.venv/ready: requirements.lock pyproject.toml
	python3 -m venv .venv
	$(BIN)/python -m pip install -q --require-hashes -r requirements.lock
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	touch $@

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	shellcheck $$(git ls-files '*.sh')

unit: setup
	$(BIN)/python -m pytest -q tests/unit

lab: setup
	$(BIN)/python -m tests.lab up --distro $(DISTRO)

lab-down:
	$(BIN)/python -m tests.lab down --distro $(DISTRO)

NODE ?= gpu001
lab-ssh:
	@$(BIN)/python -m tests.lab ssh --distro $(DISTRO) $(NODE)

demo: setup
	$(BIN)/python -m tests.lab.demo

# A simulated InfiniBand fabric of 128 nodes, in ordinary processes.
fabric: setup
	$(BIN)/python -m pytest -q tests/fabric

# All scenarios, and then that the verify of each fails where a component is idle.
molecule: setup
	cd tests && molecule test && molecule test -s drivers && molecule test -s storage
	$(BIN)/python -m pytest -q tests/molecule

# dnf itself, in a container that looks like a node of EL 9.
dnf: setup
	$(BIN)/python -m pytest -q tests/dnf

test-lab: setup
	$(BIN)/python -m pytest -q tests/lab -m "not slow"

# Not part of `make test`: what takes longer, on the converged nodes of `make demo`.
test-slow: setup
	RAILWRIGHT_LAB_KEEP=1 $(BIN)/python -m pytest -q tests/lab -m slow

# Not part of `make test`: drivers through kernel upgrades and power cuts, from a bare node.
test-drivers: setup
	$(BIN)/python -m pytest -q tests/drivers

# Not part of `make test`: storage on virtual nodes, mounted for real.
test-storage: setup
	$(BIN)/python -m pytest -q tests/storage

# Not part of `make test`: the same on Debian 13.
test-trixie: setup
	DISTRO=trixie $(BIN)/python -m pytest -q tests/lab

# Unit tests and containers side by side; the lab needs all processors.
test: lint
	$(MAKE) --jobs=2 --output-sync=target unit fabric molecule dnf
	$(MAKE) test-lab

bench: setup
	$(BIN)/python -m tests.bench

lock:
	uv pip compile pyproject.toml --extra dev --universal --generate-hashes --python-version 3.10 \
		--no-emit-index-url --custom-compile-command "make lock" -q -o requirements.lock

clean: lab-down
	rm -rf .venv .lab
