// config/defaults.ts: the built-in configuration, as plain data that loads instantly.
// Invariant: no directory in these lists is known to hold credentials. Where a tool keeps them next to its programs
// (~/.cargo/credentials.toml, ~/.local/share/uv/credentials, ~/.dotnet/corefx, ~/.gem/credentials), only the parts around them are listed.
import type { BackendChoice, WorkspaceChoice } from './effective.ts';

export const USER = 1001;
export const BACKEND: BackendChoice = 'auto';
export const WORKSPACE: WorkspaceChoice = 'auto';
export const SETUP_TIMEOUT = '30m';
export const CHECKS_TIMEOUT = '30m';
export const COMPOSE_OVERRIDE = 'override.user.yaml';
export const COMPOSE_TIMEOUT = '10m';
export const SERVICE_TIMEOUT = '60s';
export const SERVICE_MEMORY = '512m';
export const KERNEL = { ptrace: false, unixSockets: true } as const;

/** Written as in the file; the same parser reads them. */
export const LIMITS = {
  processes: '2048',
  memory: '75%',
  openFiles: '65536',
  fileSize: '20g',
  disk: '20g',
  tmp: '1g',
  cpu: 'none',
  time: 'none',
  cpus: 'none',
} as const;
export type LimitName = keyof typeof LIMITS;

/** Written as in the file. */
export const HOOK_TIMEOUT = '10s';

export const NETWORK = { mode: 'on', defaults: true, askSeconds: 60 } as const;
/** Written as in the file. */
export const NETWORK_LIMITS = { connections: '512', perSecond: '200', bytesOut: '10g' } as const;

/** Directories and files relative to the home. */
export const TOOL_DIRS = words(`
  # the user's own programs
  bin .local/bin .local/lib .local/opt .fzf
  # version managers for many languages, and the files that choose versions
  .asdf .asdfrc .tool-versions .local/share/mise/bin .local/share/mise/installs .local/share/mise/plugins .local/share/mise/shims
  .local/share/rtx/installs .local/share/rtx/shims .proto/bin .proto/shims .proto/tools .pixi/bin .pixi/envs
  .nix-profile .local/state/nix/profiles .linuxbrew
  # JavaScript
  .nvm .nvmrc .volta .fnm .local/share/fnm .local/state/fnm_multishells .nodenv .node-version .n .npm-global .npm-packages
  .local/share/pnpm .yarn .config/yarn/global .bun .deno .cache/node/corepack .cache/ms-playwright .cache/puppeteer .cache/Cypress
  # Rust
  .cargo/bin .cargo/registry .cargo/git .cargo/env .rustup
  # Python
  .pyenv .python-version .rye/shims .rye/py .rye/tools .rye/self .local/share/uv/python .local/share/uv/tools .local/pipx .local/share/pipx
  .virtualenvs .local/share/virtualenvs .cache/pypoetry/virtualenvs .local/share/pypoetry .local/share/hatch/env .local/share/pdm/venvs
  miniconda3 anaconda3 miniforge3 mambaforge micromamba .micromamba
  # Go
  go/bin go/pkg .goenv .gvm
  # Java, Kotlin, Scala, Android
  .sdkman .jenv .jabba .jdks .gradle/jdks .m2/repository .local/share/coursier Android/Sdk
  # Ruby
  .rbenv .ruby-version .rvm .rubies .gem/ruby .local/share/gem/ruby
  # .NET
  .dotnet/dotnet .dotnet/host .dotnet/sdk .dotnet/sdk-manifests .dotnet/shared .dotnet/packs .dotnet/templates .dotnet/library-packs
  .dotnet/tools .nuget/packages
  # Haskell, OCaml, Lean, Julia, Elixir, Perl, PHP, Lua, Dart, Swift and others
  .ghcup .cabal/bin .cabal/packages .cabal/store .local/state/cabal/store .stack/programs .stack/snapshots .opam .elan
  .juliaup .julia/juliaup .julia/packages .julia/artifacts .julia/registries .mix/archives .mix/elixir .mix/escripts .hex/packages .kiex .kerl
  .plenv perl5 .phpenv .phpbrew .composer/vendor .config/composer/vendor .luarocks/bin .luarocks/lib .luarocks/share
  .pub-cache/bin .pub-cache/hosted .pub-cache/global_packages .local/share/swiftly/bin .local/share/swiftly/toolchains
  .wasmtime .wasmer/bin .tfenv .terraform.d/plugins .foundry/bin .foundry/versions
  # coding agents: their programs, never their sign-ins
  .local/share/claude/versions .opencode/bin
`);

/** Outside the home and the system directories; shown where they exist. */
export const PLACES = words('/nix/store /nix/var/nix/profiles /home/linuxbrew/.linuxbrew');

/** Patterns as in patterns.ts. */
export const HIDE = words(`
  # environment files
  .env .env.* *.env .envrc .dev.vars .dev.vars.*
  # keys and key stores
  *.pem *.key *.p8 *.p12 *.pfx *.jks *.jceks *.bcfks *.keystore *.keytab *.kdb *.kdbx *.ppk *.agekey *.keychain *.keychain-db
  id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk id_xmss ssh_host_*_key secring.gpg *.ovpn wg?.conf
  .vault-token .vault_pass .vault-pass .vault_pass.txt vault_pass.txt
  # sign-ins of tools
  .npmrc .pypirc .netrc _netrc .authinfo .authinfo.gpg .git-credentials .gitcookies .pgpass .my.cnf .mylogin.cnf .htpasswd .s3cfg .boto
  .dockercfg .dockerconfigjson **/.docker/config.json .terraformrc terraform.rc .tfrc .sentryclirc rclone.conf .rclone.conf
  **/.cargo/credentials **/.cargo/credentials.toml **/.gem/credentials **/.m2/settings.xml **/.gradle/gradle.properties
  **/.composer/auth.json /auth.json **/.config/gh/hosts.yml **/.config/glab-cli/config.yml **/.config/hub **/.config/gcloud/ **/.config/op/
  **/.azure/accessTokens.json **/.azure/msal_token_cache.* .aws/ .ssh/ .gnupg/ .kube/ .password-store/ .step/ .oci/ .doctl/ .fly/ .pulumi/
  .railway/ .ngrok2/ kubeconfig kubeconfig.yml kubeconfig.yaml *.kubeconfig
  # credentials, and state with secrets in it
  credentials .credentials credentials.json .credentials.json credentials.csv credentials.toml credentials.yml credentials.yaml credentials.xml
  client_secret*.json client-secret*.json service-account*.json service_account*.json serviceaccount*.json *-service-account.json
  *_service_account.json gcp-key*.json gcloud-key*.json google-credentials*.json application_default_credentials.json firebase-adminsdk*.json
  *-firebase-adminsdk-*.json secret.yml secret.yaml secret.json secret.toml secrets.yml secrets.yaml secrets.json secrets.toml secrets.ini
  secrets.properties secrets.local.* *.secret *.secrets .secret .secrets local.settings.json appsettings.secrets.json wp-config.php
  *.tfstate *.tfstate.* *.tfvars *.tfvars.json
  # histories, which often hold pasted secrets
  .bash_history .zsh_history .psql_history .mysql_history .node_repl_history .python_history .rediscli_history .sqlite_history
  # exceptions: examples, certificates for everyone, and names that are as often directories of code or packages
  !.env.example !.env.*.example !.env.sample !.env.*.sample !.env.template !.env.*.template !.env.dist !.env.*.dist !.env.defaults !.env.schema
  !example.env !sample.env !template.env !*.example.env !*.sample.env !*.template.env !example.tfvars !*.example.tfvars
  !cacert.pem !cacerts.pem !ca-bundle.pem !ca-certificates.pem !roots.pem !dhparam.pem !dhparams.pem
  !.env/ !*.env/ !credentials/ !kubeconfig/ !*.key/
`);

export const ENV_PASS = words(`
  # terminal
  TERM COLORTERM COLORFGBG TERM_PROGRAM TERM_PROGRAM_VERSION NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE LS_COLORS
  # language and time
  LANG LANGUAGE LC_ALL LC_ADDRESS LC_COLLATE LC_CTYPE LC_IDENTIFICATION LC_MEASUREMENT LC_MESSAGES LC_MONETARY LC_NAME LC_NUMERIC
  LC_PAPER LC_TELEPHONE LC_TIME TZ SOURCE_DATE_EPOCH
  # habits
  EDITOR VISUAL PAGER LESS LESSCHARSET MORE CI NODE_ENV RUST_BACKTRACE PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONHASHSEED
`);

/** Variables with a path, or several separated by ":". Passed only if every path is visible inside. */
export const PATH_ENV = words(`
  ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR PROTO_HOME HOMEBREW_PREFIX HOMEBREW_CELLAR HOMEBREW_REPOSITORY NIX_SSL_CERT_FILE
  NODE_EXTRA_CA_CERTS SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO PIP_CERT CARGO_HTTP_CAINFO AWS_CA_BUNDLE
  NVM_DIR NVM_BIN NVM_INC FNM_DIR FNM_MULTISHELL_PATH VOLTA_HOME NODENV_ROOT N_PREFIX PNPM_HOME BUN_INSTALL DENO_INSTALL DENO_INSTALL_ROOT
  PLAYWRIGHT_BROWSERS_PATH PUPPETEER_EXECUTABLE_PATH CHROME_BIN CARGO_HOME RUSTUP_HOME
  PYENV_ROOT VIRTUAL_ENV WORKON_HOME PIPX_HOME PIPX_BIN_DIR UV_PYTHON_INSTALL_DIR UV_TOOL_DIR CONDA_PREFIX CONDA_EXE CONDA_PYTHON_EXE
  GOPATH GOROOT GOBIN GOENV_ROOT JAVA_HOME JDK_HOME JENV_ROOT SDKMAN_DIR SDKMAN_CANDIDATES_DIR MAVEN_HOME M2_HOME GRADLE_HOME
  KOTLIN_HOME SCALA_HOME ANDROID_HOME ANDROID_SDK_ROOT ANDROID_NDK_HOME ANDROID_NDK_ROOT RBENV_ROOT RUBY_ROOT GEM_HOME GEM_PATH GEM_ROOT
  MY_RUBY_HOME rvm_path DOTNET_ROOT NUGET_PACKAGES GHCUP_INSTALL_BASE_PREFIX OPAMROOT OPAM_SWITCH_PREFIX CAML_LD_LIBRARY_PATH
  OCAML_TOPLEVEL_PATH ELAN_HOME JULIAUP_DEPOT_PATH PERL5LIB PERL_LOCAL_LIB_ROOT PHPENV_ROOT FLUTTER_ROOT SWIFTLY_HOME_DIR SWIFTLY_BIN_DIR
  WASMTIME_HOME CUDA_HOME CUDA_PATH ROCM_PATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH LD_LIBRARY_PATH LIBRARY_PATH CPATH MANPATH INFOPATH
  TERMINFO TERMINFO_DIRS XDG_DATA_DIRS
`);

/**
 * Names below /etc. Left out on purpose: passwd, group, hosts, resolv.conf and hostname (a sandbox has its own); shadow,
 * sudoers, ssh and ssl/private; environment, gitconfig, npmrc, pip.conf, wgetrc and maven/settings.xml, which hold tokens
 * and proxy passwords; machine-id.
 */
export const ETC = words(`
  # the loader, names of things, certificates that anyone may read
  alternatives ld.so.cache ld.so.conf ld.so.conf.d ld-musl-*.path nsswitch.conf host.conf gai.conf protocols services rpc ethertypes netconfig
  networks bindresvport.blacklist ca-certificates ca-certificates.conf crypto-policies ssl/certs ssl/cert.pem ssl/openssl.cnf
  pki/ca-trust pki/java pki/tls/cert.pem pki/tls/certs pki/tls/openssl.cnf pki/tls/openssl.d
  # which system this is
  debian_version os-release lsb-release lsb-release.d alpine-release arch-release centos-release fedora-release redhat-release rocky-release
  almalinux-release system-release SuSE-release issue localtime timezone locale.alias locale.conf locale.gen
  # shells, terminals, editors, manuals
  profile profile.d bash.bashrc bashrc bash_completion bash_completion.d zsh zshenv zprofile zshrc fish inputrc shells skel DIR_COLORS terminfo
  nanorc vim vimrc virc emacs xdg mailcap mime.types magic magic.mime manpath.config man_db.conf groff
  # what languages and tools do not run without
  java java-* .java jvm maven/m2.conf maven/logging maven/toolchains.xml perl python python3 python3.* php/*/cli php/*/mods-available R lua
  texmf texlive libpaper.d papersize paperspecs ghostscript ImageMagick-* fonts sgml xml gdb OpenCL vulkan glvnd chromium chromium.d
  mke2fs.conf xattr.conf
`);

/** One entry per word; a line that begins with "# " is a comment. */
function words(text: string): readonly string[] {
  return text
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('# '))
    .flatMap((line) => line.split(' '))
    .filter((word) => word !== '');
}
