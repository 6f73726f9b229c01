# All set-up happens here: `make demo` and `make test` need python3 (venv, pip), make and g++.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
DEVICE ?= sim:orin

.PHONY: demo test slow fuzz gpu pairs-gpu clean paper-sim sim-speed

demo: $(VENV)/.demo
	@mkdir -p out
	$(BIN)/miriam bench mdtb --device $(DEVICE) --json out/demo.json --plot out/demo.png

test: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -m "not slow and not gpu" -n 2

slow: $(VENV)/.test
	$(BIN)/pytest -m "slow and not gpu" -n 2

# COUNT random kernels, one per seed from SEEDS on: original and elastic forms, bit for bit.
SEEDS ?= 0
COUNT ?= 2000

fuzz: $(VENV)/.test
	$(BIN)/python -m tests.fuzz --seeds $(SEEDS) --count $(COUNT)

# On a machine with an NVIDIA GPU: its tests, then what the CUDA device costs, as JSON and as a page.
gpu: $(VENV)/.test
	@mkdir -p out
	$(BIN)/pytest -m gpu
	$(BIN)/python -m benchmarks.device_gpu out/device.json
	$(BIN)/python -m benchmarks.device_page out/device.json > out/device.md

# POLICIES on a GPU, in worlds of all SMs, 32, 16 and 8: out/docs/results/pairs-h200.md and its
# charts from what is measured here, WINDOW seconds a row; 496 rows, and what each takes besides.
# A command that fails without a report is tried three times: docs/bench.md, "A fault in worlds".
PAIRS ?= resnet50+squeezenet squeezenet+alexnet squeezenet+resnet50 alexnet+squeezenet
POLICIES ?= gate,gate:yield_share=0.05,sequential,multistream,partition,vacate,tally,orion,miriam,$\
	miriam-host,miriam-measured:budget=0,miriam-measured:budget=0.05,miriam-measured:budget=0.1,$\
	miriam-measured:budget=0.2,miriam-measured:budget=0.5,miriam-measured:budget=1
WINDOW ?= 1
RESULTS := out/docs/results
# 8 SMs of an H200 are one group, which can not be split.
comma := ,
space := $(subst ,, )
UNSPLIT = $(subst $(space),$(comma),$(filter-out partition% vacate%,$(subst $(comma), ,$(POLICIES))))

pairs-gpu: $(VENV)/.test
	@mkdir -p $(RESULTS)/data && rm -f $(RESULTS)/data/pairs-*.json
	for world in 0 32 16 8; do for pair in $(PAIRS); do \
	    report=$(RESULTS)/data/pairs-$$world-$$pair.json; \
	    policies=$(POLICIES); test $$world != 8 || policies=$(UNSPLIT); \
	    for try in 1 2 3; do \
	        $(BIN)/miriam bench pairs --device cuda:0 --world $$world --pair $$pair --gap-us 0,4000 \
	            --in-flight 2 --policy $$policies --seconds $(WINDOW) --json $$report; \
	        code=$$?; if test -f $$report -o $$code != 1; then break; fi; \
	    done; \
	    test $$code = 0 || exit $$code; \
	done; done
	cd out && PYTHONPATH=.. ../$(BIN)/python -m benchmarks.pairs_page docs/results/data/pairs-*.json \
	    > docs/results/pairs-h200.md

# The paper's evaluation in the simulator, and how fast the simulator itself is.
paper-sim: $(VENV)/.demo
	$(BIN)/miriam bench paper --out docs/results/paper-sim.md

sim-speed: $(VENV)/.demo
	$(BIN)/python -m benchmarks.sim_speed

clean:
	rm -rf out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find miriam tests -name __pycache__ -prune -exec rm -rf {} +

# pip comes last when an environment is made: a half-made one is made again.
$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/pip
	$(PIP) --editable '.[plot,models,elastic]'
	@touch $@

# The test extra holds the demo's, so its stamp counts for both.
$(VENV)/.test: pyproject.toml | $(BIN)/pip
	$(PIP) --editable '.[test]'
	@touch $(VENV)/.demo $@
