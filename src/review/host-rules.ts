// review/host-rules.ts: rules, as data, for files that act on the user's machine: they run, are loaded or configure programs there.
// The rules for CI and for a closer look are in lane-rules.ts.
import { paths } from './path-pattern.ts';
import type { Level } from './fact.ts';
import type { LINE_FACTS } from './line-facts.ts';

export const HOST_RULES: readonly LaneRule[] = [
  {
    id: 'package-manifest',
    lane: 'host',
    content: 'manifest',
    reason: 'Package managers run the scripts in it, some of them on every install.',
    match: paths('package.json package.json5 package.yaml composer.json deno.json deno.jsonc jsr.json bower.json'),
  },
  {
    id: 'package-config',
    lane: 'host',
    content: 'package-config',
    reason: 'Tells the package manager where code comes from and what to run during an install.',
    match:
      paths(`.npmrc .yarnrc .yarnrc.* .yarn/** .pnpmfile.* pnpmfile.* pnpm-workspace.yaml .pnp.* bunfig.toml .bunfig.toml lerna.json
      rush.json common/config/rush/** binding.gyp *.gyp *.gypi .bowerrc auth.json pip.conf pip.ini .condarc nuget.config`),
  },
  {
    id: 'git-hooks',
    lane: 'host',
    reason: 'Holds or configures git hooks, which run on commit, checkout or push.',
    match:
      paths(`.husky/** .huskyrc* husky.config.* .githooks/** githooks/** .git-hooks/** git-hooks/** .hooks/** lefthook.* .lefthook.*
      lefthook-local.* .lefthook-local.* .lefthook/** .pre-commit-config.* .pre-commit-hooks.* prek.toml .overcommit.yml
      .simple-git-hooks.* simple-git-hooks.* captainhook.json grumphp.yml* .cocogitto/** cog.toml applypatch-msg pre-applypatch
      post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit pre-rebase post-checkout post-merge
      pre-push pre-receive update post-receive post-update reference-transaction push-to-checkout pre-auto-gc post-rewrite
      sendemail-validate fsmonitor-watchman* post-index-change`),
  },
  {
    id: 'git-attributes',
    lane: 'host',
    content: 'attributes',
    reason: 'Decides which programs git runs on files and which diffs it hides.',
    match: paths('.gitattributes gitattributes gitatt~* gi7d29~*'),
  },
  {
    id: 'git-modules',
    lane: 'host',
    content: 'submodules',
    reason: 'Names other repositories that git downloads and enters.',
    match: paths('.gitmodules gitmod~* gi7eba~* .gitrepo .hgsub .gitslave'),
  },
  {
    id: 'git-config',
    lane: 'host',
    reason: 'Can be a configuration for git, which names programs to run.',
    match: paths('.gitconfig *.gitconfig gitconfig .lfsconfig .hgrc'),
  },
  {
    id: 'repository',
    lane: 'host',
    reason: 'Looks like part of another repository; a version control tool that enters it obeys its configuration.',
    match: paths('*.git/** HEAD packed-refs .hg/** .jj/** .svn/** .bzr/** .sl/** _darcs/** .fossil* cvs/root'),
  },
  {
    id: 'make',
    lane: 'host',
    reason: 'make runs the recipes in it.',
    match: paths('Makefile Makefile.* GNUmakefile BSDmakefile *.mk *.mak *.make *.makefile Kbuild'),
  },
  {
    id: 'task-runner',
    lane: 'host',
    reason: 'Holds tasks that a task runner or build tool runs.',
    match:
      paths(`justfile .justfile *.just Taskfile.* Taskfile.dist.* .Taskfile.* Rakefile Rakefile.rb *.rake rakelib/** Thorfile *.thor
      Guardfile Earthfile Tiltfile tilt_config.json magefile.go magefiles/** fabfile.py fabfile/** dodo.py Snakefile SConstruct SConscript wscript
      waf Jakefile* Cakefile build.xml *.ant turbo.json nx.json project.json moon.yml .moon/** bacon.toml xtask/** runfile .run/**
      *.taskfile tusk.yml maskfile.md *.ninja meson.build meson_options.txt meson.options premake*.lua xmake.lua`),
  },
  {
    id: 'build-tool',
    lane: 'host',
    reason: 'A build tool runs code from it.',
    match:
      paths(`BUILD BUILD.bazel WORKSPACE WORKSPACE.* MODULE.bazel *.bzl .bazelrc *.bazelrc tools/bazel BUCK .buckconfig pants.toml
      build.zig build.zig.zon dune dune-project *.opam configure configure.* *.ac *.am *.m4 build.sbt *.sbt build.sc build.mill
      mix.exs .iex.exs rebar.config rebar.config.script Setup.hs Setup.lhs *.cabal cabal.project* stack.yaml project.clj build.clj
      deps.edn build.boot Package.swift Podfile *.podspec fastlane/** Fastfile Gemfile gems.rb *.gemspec .rspec Capfile Brewfile
      Dangerfile* *.csproj *.vbproj *.fsproj *.vcxproj *.proj *.props *.targets Directory.Build.* *.sln *.slnx *.cake *.fsx *.csx
      conanfile.* build.ninja .bundle/** .gclient DEPS *.nimble *.nims *.rockspec`),
  },
  {
    id: 'cargo',
    lane: 'host',
    reason: 'cargo runs it, or takes from it what to run, on every build.',
    match: paths('build.rs .cargo/** rust-toolchain rust-toolchain.toml'),
  },
  {
    id: 'gradle',
    lane: 'host',
    reason: 'Gradle runs it on every build, and some editors do on opening the folder.',
    match: paths('*.gradle *.gradle.* gradlew gradlew.bat gradle/** gradle.properties buildSrc/** .gradle/**'),
  },
  {
    id: 'maven',
    lane: 'host',
    reason: 'Maven runs the plugins it names.',
    match: paths('pom.xml *.pom mvnw mvnw.cmd .mvn/**'),
  },
  {
    id: 'cmake',
    lane: 'host',
    reason: 'CMake runs it, and some editors do on opening the folder.',
    match: paths('CMakeLists.txt *.cmake *.cmake.in CMakePresets.json CMakeUserPresets.json'),
  },
  {
    id: 'python-project',
    lane: 'host',
    content: 'pyproject',
    reason: 'Chooses the code that runs when the Python project is installed, built or tested.',
    match: paths('pyproject.toml setup.cfg uv.toml hatch.toml pdm.toml poetry.toml .pdm.toml pixi.toml'),
  },
  {
    id: 'python-startup',
    lane: 'host',
    reason: 'Python or its tools run it by its name, without being asked.',
    match:
      paths(`setup.py conftest.py noxfile.py tox.ini pytest.ini .pytest.ini *.pth sitecustomize.py usercustomize.py hatch_build.py
      ipython_config.py jupyter_*config.py .pdbrc .pythonrc* .coveragerc mypy.ini .mypy.ini .pylintrc pylintrc .flake8
      .pylintrc.toml gunicorn.conf.py celeryconfig.py manage.py pyvenv.cfg`),
  },
  {
    id: 'js-config',
    lane: 'host',
    reason: 'A JavaScript tool runs it, or loads the plugins it names; editors do so on opening a file.',
    match:
      paths(`*.config.js *.config.cjs *.config.mjs *.config.ts *.config.cts *.config.mts *.config.jsx *.config.tsx .*rc.js .*rc.cjs
      .*rc.mjs .*rc.ts .*rc.cts .*rc.mts vite.config.* vitest.config.* vitest.workspace.* vitest.setup.* webpack.* webpack/*.js
      rollup.config.* .eslintrc* .eslintplugin* eslint.config.* .oxlintrc* oxlint.* .prettierrc* prettier.config.* .babelrc*
      babel.config.* jest.config.* jest.setup.* jest.preset.* next.config.* nuxt.config.* svelte.config.* astro.config.*
      postcss.config.* .postcssrc* tailwind.config.* playwright.config.* metro.config.* gulpfile.* gulpfile.*/** gruntfile.*
      commitlint.config.* .commitlintrc* lint-staged.config.* .lintstagedrc* .stylelintrc* stylelint.config.* cypress.config.*
      cypress.json cypress/plugins/** cypress/support/** karma.conf.* .mocharc* ava.config.* .nycrc* nyc.config.* gatsby-config.*
      gatsby-node.* vue.config.* angular.json .angular-cli.json .storybook/** .swcrc *.swcrc ember-cli-build.js .ember-cli*
      .releaserc* release.config.* .release-it.* .czrc .cz-config.* .cz.* plopfile.* .size-limit* wdio.conf.* protractor.conf.*
      nightwatch.conf.* knexfile.* ormconfig.* .graphqlrc* codegen.yml codegen.ts .sequelizerc .taprc biome.json biome.jsonc
      dprint.json .remarkrc* .markdownlint-cli2.* .textlintrc* .syncpackrc* .ncurc* .c8rc* nodemon.json .nodemonrc .parcelrc
      .terserrc* .browserslistrc .wallaby.js wallaby.js ecosystem.config.* pm2.* forge.config.* electron-builder.*`),
  },
  {
    id: 'environment',
    lane: 'host',
    reason: 'Sets up the shell or downloads tools when someone enters the directory.',
    match:
      paths(`.envrc .envrc.* .direnv/** direnv.toml .tool-versions .asdfrc mise.toml .mise.toml mise.*.toml .mise.*.toml mise/config.toml
      mise/config.*.toml .mise/** .config/mise/** .config/mise.* mise-tasks/** .mise-tasks/** .rtx.toml .rtx.*.toml .prototools
      aqua.yaml aqua.yml .aqua/** devbox.json devenv.nix devenv.yaml .devenv/** .flox/** .hermit/** .autoenv .autoenv.zsh .env.zsh
      .shadowenv.d/** .in .out .pkgx.yaml .tea.yaml .sdkmanrc .default-*-packages .spin/** .localrc`),
  },
  {
    id: 'nix',
    lane: 'host',
    reason: 'Nix evaluates it and builds what it describes.',
    match: paths('*.nix .nixpkgs/** guix.scm manifest.scm'),
  },
  {
    id: 'editor',
    lane: 'host',
    content: 'editor',
    reason: 'An editor obeys it on opening the folder: tasks, debuggers, programs to call.',
    match:
      paths(`.vscode/** *.code-workspace .vscode-test* .idea/** *.iml *.ipr *.iws .fleet/** .zed/** .vs/** .settings/** .project
      .classpath .cproject .factorypath .nvim/** .nvim.lua .nvimrc .exrc .vimrc .gvimrc .vim/** .lvimrc .lazy.lua .vimspector.json
      .dir-locals.el .dir-locals-2.el .emacs .emacs.d/** .projectile *.sublime-project *.sublime-workspace *.sublime-build
      .helix/** .nova/** .kakrc *.xcodeproj/** *.xcworkspace/** *.xcscheme *.playground/** .theia/** .atom/** .ycm_extra_conf.py
      .ccls .clangd compile_flags.txt compile_commands.json .solargraph.yml .luarc.json .neoconf.json .nfnl.fnl .ensime
      nbproject/** .kdev4/**`),
  },
  {
    id: 'container',
    lane: 'host',
    reason: 'Describes containers or machines that are built and started from this project.',
    match:
      paths(`.devcontainer/** .devcontainer.json devcontainer.json devcontainer-feature.json Dockerfile Dockerfile.* Dockerfile-*
      *.Dockerfile Containerfile Containerfile.* *.Containerfile docker-compose*.yml docker-compose*.yaml compose.yml compose.yaml
      compose.*.yml compose.*.yaml compose-*.yml compose-*.yaml *.compose.yml *.compose.yaml docker-bake.* .docker/**
      docker-entrypoint* Vagrantfile Procfile Procfile.* skaffold.yaml devspace.yaml garden.yml okteto.yml .gitpod.* .replit
      .codesandbox/** sandbox.config.json .stackblitzrc .ddev/** .lando.yml .idx/** *.def process-compose.* nanobox.yml
      boxfile.yml *.container .toolboxrc .distrobox/** distrobox.ini`),
  },
  {
    id: 'script',
    lane: 'host',
    reason: 'A script that people and tools run directly.',
    match:
      paths(`*.sh *.bash *.bats *.zsh *.fish *.ksh *.csh *.tcsh *.dash *.nu *.elv *.xsh *.ps1 *.psm1 *.psd1 *.bat *.cmd *.btm *.vbs *.vbe
      *.wsf *.wsh *.jse *.hta *.command *.applescript *.scpt *.scptd/** *.workflow/** *.desktop *.lnk *.reg *.inf *.pif *.scr
      *.url *.webloc *.csh.in *.sh.in`),
  },
  {
    id: 'shell-start',
    lane: 'host',
    reason: 'A program reads it at start when the directory is a home directory, or is copied into one.',
    match:
      paths(`.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .zsh/**
      .cshrc .tcshrc .login .logout .kshrc .mkshrc .inputrc .xinitrc .xprofile .xsession .xsessionrc .Xresources .screenrc
      .tmux.conf .wezterm.lua .config/fish/** .config/autostart/** .config/systemd/** .config/nvim/** .config/git/** .ssh/**
      .gnupg/** .gdbinit gdbinit .lldbinit .lldbinit-* *-gdb.py .radare2rc .curlrc .wgetrc .Rprofile Rprofile.site .Renviron
      .irbrc .pryrc .psqlrc .sqliterc .my.cnf .mylogin.cnf .ghci .octaverc .perldb .tclshrc .guile .sbclrc .clisprc* .local/bin/**
      .local/share/** Library/LaunchAgents/** .pam_environment .hushlogin`),
  },
  {
    id: 'installed-code',
    lane: 'host',
    reason: 'Installed code of others, which programs load and reviewers seldom read.',
    match:
      paths(`node_modules/** .venv/** venv/** .virtualenv/** virtualenv/** vendor/** bower_components/** jspm_packages/** web_modules/**
      __pypackages__/** site-packages/** dist-packages/** .tox/** .nox/** .eggs/** *.egg-info/** *.dist-info/** *.egg-link
      __pycache__/** Pods/** Carthage/** .pnpm-store/** .pnpm/** .terraform/** elm-stuff/** .stack-work/** _build/deps/** .bin/**
      .pixi/** .conda/** .cache/**`),
  },
  {
    id: 'native-code',
    lane: 'host',
    reason: 'Compiled code, which cannot be read here and which programs load or run.',
    match:
      paths(`*.exe *.dll *.so *.so.* *.dylib *.node *.jar *.war *.ear *.class *.pyc *.pyo *.pyd *.wasm *.o *.a *.lib *.ko *.sys *.cpl
      *.ocx *.xll *.msi *.msix *.apk *.aab *.ipa *.dex *.deb *.rpm *.appimage *.flatpak *.pkg *.dmg *.run *.bundle *.elc *.beam
      *.luac *.kext/** *.app/** *.vsix *.xpi *.crx *.pyz *.pex *.phar *.oxt`),
  },
  {
    id: 'agent',
    lane: 'host',
    reason: 'Coding agents on your machine take instructions, tools and hooks from it.',
    match:
      paths(`CLAUDE.md CLAUDE.*.md .claude/** .claude.json .claude-plugin/** .claudeignore AGENTS.md AGENTS.*.md AGENT.md .agents/**
      .agent/** GEMINI.md .gemini/** .geminiignore .codex/** codex.md .cursor/** .cursorrules .cursorignore .cursorindexingignore
      .mcp.json mcp.json .mcp/** *.mcp.json mcp_config.json .github/copilot-instructions.md .github/instructions/**
      .github/prompts/** .github/chatmodes/** .github/agents/** .github/skills/** .github/hooks/** .github/copilot/** .copilot/**
      .aider* .opencode/** opencode.json opencode.jsonc .windsurf/** .windsurfrules .cline/** .clinerules/** .roo/** .roorules*
      .roomodes .rooignore .kilocode/** .kilocodemodes .continue/** .continuerc.json .continuerules .goose/** .goosehints .kiro/**
      .junie/** .augment/** .augment-guidelines .amazonq/** .amp/** .qwen/** QWEN.md .crush/** .crush.json crush.json CRUSH.md
      WARP.md JULES.md replit.md .factory/** .trae/** .tabnine/** .rules SKILL.md *.prompt.md *.instructions.md *.chatmode.md
      *.mdc .openhands/** .openhands_instructions .sourcegraph/** .cody/** .devin/** .serena/** .taskmaster/** .pi/** .grok/**
      .ruler/** .rulesync/** .specify/** .superdesign/** .vibe/** .letta/** .ai/** .llm/** .ignore.ai`),
  },
  {
    id: 'ags',
    lane: 'host',
    reason: 'Configures ags itself: what a sandbox may see, reach and change.',
    match: paths('ags.yaml ags.yml ags.*.yaml ags.*.yml ags.json .ags/** .agsrc* .agsignore'),
  },
];

export interface LaneRule {
  readonly id: string;
  readonly lane: Level;
  readonly match: readonly string[];
  readonly reason: string;
  /** Which inspector reads the file for facts; see inspectors.ts. */
  readonly content?: InspectorId;
}

export type InspectorId = keyof typeof LINE_FACTS | 'manifest' | 'lockfile' | 'pyproject';
