# Each target prepares .venv by itself (setup-venv.sh), so any of them runs on a fresh machine.
# PYTHON=python3.12 names the Python that .venv is made with.
VENV := .venv
# Gangs wait more than they compute: more workers than processors.
WORKERS ?= 6
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder

.PHONY: demo help venv test check lint quick gangs long lowest engines slurm real gpu lock clean controller dist

demo: venv ## check two local nodes, sweep trainings over them, print the table (some minutes)
	$(BIN)/dlperf-orch provision local
	$(BIN)/dlperf-orch sweep smoke --inventory local

help: ## this list
	@awk -F ':.* ## ' '/^[a-z]+:.* ## / { printf "make %-12s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: ## .venv with all that the other targets need
	@sh setup-venv.sh

# `make check test` runs no test twice: what both need is made once.
check: lint quick ## what must pass before a change lands: lint and quick

test: quick gangs ## all tests but those of long and real

lint: venv ## formatting, lint, types, layers
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

quick: venv ## tests that start no gangs of processes, with coverage
	$(PYTEST) -n auto --maxprocesses 8 -m "not cluster" --cov

gangs: venv ## tests that train for real; as root on Debian also on a virtual cluster
	sh tests/cluster/install.sh
	COVERAGE_FILE=.coverage-gangs $(PYTEST) -n $(WORKERS) -m "cluster and not long" --cache-clear \
	    --cov --cov-report= --cov-fail-under=0; code=$$?; $(BIN)/python -m tests.session rooms; \
	    case $$code in 1) $(BIN)/python -m tests.session once-more ;; *) exit $$code ;; esac

# What takes minutes, or proves once more what a quicker test proves.
long: venv ## tests that take minutes each
	sh tests/cluster/install.sh chromium chromium fc-list fontconfig
	$(PYTEST) -n $(WORKERS) -m long

# On the lowest version of each dependency that pyproject.toml allows, in a venv of its own.
lowest: venv ## tests on the lowest version of each dependency
	$(BIN)/python -m venv $(VENV)/lowest
	$(VENV)/lowest/bin/python -m pip install --quiet -r tests/lowest.txt hypothesis pytest syrupy
	$(VENV)/lowest/bin/python -m pytest -p no:cacheprovider tests/files/test_yaml_reader.py \
	    tests/transports/test_transports.py tests/transports/test_ssh*.py \
	    tests/runtimes/test_engine.py tests/state/test_archives.py

# What depends on Docker, with another one than this machine's: Debian unstable's, or whichever has its
# programs in OTHER_DOCKER/bin, where virtual nodes see them. Its images lie where it has them by
# itself, then in containerd, then on every second node in containerd.
OTHER_DOCKER ?= /opt/docker-unstable
engines: venv ## what depends on Docker, with another Docker
	sh tests/cluster/install.sh
	[ -x $(OTHER_DOCKER)/bin/dockerd ] || sh tests/cluster/other_docker.sh unstable $(OTHER_DOCKER)
	export OTHER_BIN=$(OTHER_DOCKER)/bin PATH=$(OTHER_DOCKER)/bin:$$PATH && \
	    for store in '' containerd; do \
	        DOCKER_IMAGE_STORE=$$store $(PYTEST) -n $(WORKERS) -m "not long" tests/runtimes || exit; \
	    done && \
	    DOCKER_IMAGE_STORE=mixed $(PYTEST) -n $(WORKERS) -m "not long" tests/on_cluster/test_images.py \
	        tests/on_cluster/test_registry.py tests/provisioning/test_carry.py \
	        tests/on_cluster/test_sweep.py tests/on_cluster/test_slurm_docker.py

# What depends on Slurm, with another one than Debian's: of the tag SLURM, built once into OTHER_SLURM.
SLURM ?= slurm-25-11-7-1
OTHER_SLURM ?= /opt/$(SLURM)
slurm: venv ## what depends on Slurm, with another Slurm
	sh tests/cluster/install.sh
	sh tests/cluster/other_slurm.sh $(SLURM) $(OTHER_SLURM)
	OTHER_BIN=$(OTHER_SLURM)/bin:$(OTHER_SLURM)/sbin PATH=$(OTHER_SLURM)/bin:$(OTHER_SLURM)/sbin:$$PATH \
	    $(PYTEST) -n $(WORKERS) tests/on_cluster/test_slurm*.py

# Upstream's real programs on CPUs, and pyxis: of REAL_SOURCES, a folder of git repositories, else from
# where they are published; and apptainer where there is one. It needs root on Debian, builds below
# .real once, and is part of nothing.
ALONE := $(addprefix tests/real/test_,oneflow.py tensorflow.py pytorch.py)
real: venv ## upstream's real programs, on CPUs
	sh tests/cluster/install.sh mpirun openmpi-bin mpicxx libopenmpi-dev g++ g++ musl-gcc musl-tools \
	    /usr/include/slurm/spank.h libslurm-dev mksquashfs squashfs-tools parallel parallel curl curl \
	    jq jq zstd zstd column bsdextrautils squashfuse_ll squashfuse
	$(PYTEST) -m real -v $(ALONE) # alone: a neighbor's gang is an error where this machine is the nodes
	$(PYTEST) -n $(WORKERS) -m real -v tests/real $(ALONE:%=--ignore %)

# Nodes are this machine, as plain processes. Without a GPU it says so, and succeeds.
gpu: venv ## the whole job on this machine's NVIDIA GPU, and all that its tools print, in one archive
	PYTHON=$(BIN)/python sh tests/on_gpu/run.sh gpu-run

# Pins and hashes of everything but PyTorch itself, whose builds differ between machines; its pin
# is the extra `demo` in pyproject.toml.
lock: venv ## write requirements.lock anew
	$(BIN)/pip-compile --quiet --no-strip-extras --generate-hashes --unsafe-package torch --no-header \
	    --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-annotate --no-config \
	    --extra dev --extra demo --output-file requirements.lock pyproject.toml
	sed -i -e '/^$$/d' -e '/^# WARNING/,$$d' requirements.lock # it warns of torch, which is left out on purpose
	$(BIN)/python -m tests.package.sbom # what of it the wheel names as its bill of materials

# This program as an image, for machines that have Docker and no Python; CONTROLLER names it.
CONTROLLER ?= dlperf-orch
controller: ## this program as a Docker image
	docker build --tag $(CONTROLLER) .

# Wheel and sdist below dist: the same bytes wherever the same commit is built.
dist: venv ## wheel and sdist, below dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --no-isolation --outdir dist .

clean: ## remove .venv and all that the targets made
	rm -rf $(VENV) .dlperf .real dist gpu-run gpu-run.tar.gz
