// config/network/presets.ts: built-in host lists as plain data, written as rules; parsed only when a sandbox first connects.
// Invariant: every rule in them is valid (a test proves it). Telemetry, paste bins and file drops are left out. Other hosts that
// accept uploads, such as source hosting, can still be used to send data out.
import { parseRule } from '../../protocol/network-rule.ts';
import type { NetworkPolicy, NetworkRule } from '../../protocol/network.ts';
import { DEFAULT_LIST } from './network.ts';

export interface Preset {
  readonly about: string;
  readonly rules: readonly string[];
  /** On unless `network.defaults` is false. */
  readonly default: boolean;
}

/** Built-in rules first, then those of the policy. */
export function expandRules(policy: Pick<NetworkPolicy, 'presets' | 'rules'>): NetworkRule[] {
  const names = policy.presets.flatMap((name) => (name === DEFAULT_LIST ? DEFAULT_NAMES : [name]));
  return [...[...new Set(names)].flatMap(rulesOf), ...policy.rules];
}

function rulesOf(name: string): NetworkRule[] {
  return (PRESETS[name]?.rules ?? []).map((text) => {
    const rule = parseRule(text);
    if ('problem' in rule) throw new Error(`built-in ${name}: ${text}: ${rule.problem}`);
    return { action: 'allow', ...rule, origin: `built-in ${name}` };
  });
}

const on = (about: string, rules: string): Preset => ({ about, rules: words(rules), default: true });
const off = (about: string, rules: string): Preset => ({ about, rules: words(rules), default: false });

export const PRESETS: Readonly<Record<string, Preset>> = {
  // source hosting
  github: on(
    'GitHub: git, API, archives, raw files, releases, packages',
    'github.com api.github.com codeload.github.com *.githubusercontent.com *.pkg.github.com',
  ),
  gitlab: on('GitLab: git, API, packages', 'gitlab.com registry.gitlab.com'),
  bitbucket: on('Bitbucket: git and API', 'bitbucket.org api.bitbucket.org'),
  codeberg: on('Codeberg: git and API', 'codeberg.org'),

  // package registries
  npm: on('npm and Yarn', '*.npmjs.org *.npmjs.com *.yarnpkg.com'),
  node: on(
    'Node.js, Bun and Deno themselves, and JSR',
    'nodejs.org *.nodejs.org bun.sh deno.land dl.deno.land jsr.io *.jsr.io',
  ),
  pypi: on('PyPI', 'pypi.org *.pypi.org files.pythonhosted.org bootstrap.pypa.io www.python.org'),
  conda: on('conda', 'conda.anaconda.org repo.anaconda.com'),
  crates: on('crates.io and Rust itself', 'crates.io *.crates.io static.rust-lang.org sh.rustup.rs'),
  go: on(
    'Go modules and Go itself',
    'proxy.golang.org sum.golang.org index.golang.org golang.org go.dev dl.google.com gopkg.in',
  ),
  maven: on(
    'Maven Central, Google and Gradle, and their plugins',
    'repo1.maven.org repo.maven.apache.org central.sonatype.com maven.google.com services.gradle.org plugins.gradle.org plugins-artifacts.gradle.org downloads.gradle.org repo.gradle.org',
  ),
  spring: on('Spring releases and starters', 'repo.spring.io start.spring.io'),
  rubygems: on('RubyGems', 'rubygems.org *.rubygems.org cache.ruby-lang.org'),
  packagist: on('Packagist and Composer', 'packagist.org repo.packagist.org getcomposer.org'),
  nuget: on('NuGet and .NET itself', 'nuget.org *.nuget.org builds.dotnet.microsoft.com dot.net'),
  hex: on('Hex and Elixir', 'hex.pm repo.hex.pm builds.hex.pm'),
  pub: on('pub.dev, for Dart', 'pub.dev'),
  hackage: on(
    'Hackage, Stackage and GHCup',
    'hackage.haskell.org *.hackage.haskell.org *.stackage.org downloads.haskell.org',
  ),
  cpan: on('CPAN', 'cpan.org *.cpan.org metacpan.org *.metacpan.org'),
  cran: on('CRAN', 'cran.r-project.org cloud.r-project.org'),
  julia: on('Julia packages', 'pkg.julialang.org *.pkg.julialang.org julialang-s3.julialang.org'),
  opam: on('opam', 'opam.ocaml.org'),
  terraform: on(
    'Terraform and OpenTofu providers',
    'registry.terraform.io releases.hashicorp.com registry.opentofu.org',
  ),
  nix: on('Nix binary caches', 'cache.nixos.org channels.nixos.org'),
  homebrew: on('Homebrew', 'formulae.brew.sh'),

  // packages of Linux distributions
  debian: on('Debian', '*.debian.org http://*.debian.org'),
  ubuntu: on('Ubuntu', '*.ubuntu.com http://*.ubuntu.com'),
  alpine: on('Alpine', 'dl-cdn.alpinelinux.org http://dl-cdn.alpinelinux.org'),
  fedora: on('Fedora', '*.fedoraproject.org http://*.fedoraproject.org'),
  arch: on('Arch Linux', '*.archlinux.org archlinux.org geo.mirror.pkgbuild.com'),

  // model APIs
  anthropic: on('Anthropic: Claude', 'api.anthropic.com platform.claude.com'),
  openai: on('OpenAI: Codex', 'api.openai.com chatgpt.com auth.openai.com'),
  gemini: on(
    'Google: Gemini',
    'generativelanguage.googleapis.com cloudcode-pa.googleapis.com oauth2.googleapis.com aiplatform.googleapis.com',
  ),
  qwen: on('Alibaba: Qwen', 'dashscope.aliyuncs.com dashscope-intl.aliyuncs.com chat.qwen.ai portal.qwen.ai'),
  opencode: on('OpenCode', 'opencode.ai models.opencode.ai models.dev'),
  openrouter: on('OpenRouter', 'openrouter.ai'),
  mistral: on('Mistral', 'api.mistral.ai codestral.mistral.ai'),
  deepseek: on('DeepSeek', 'api.deepseek.com'),
  xai: on('xAI: Grok', 'api.x.ai'),
  groq: on('Groq', 'api.groq.com'),
  moonshot: on('Moonshot: Kimi', 'api.moonshot.ai api.moonshot.cn api.kimi.com'),
  zai: on('Z.ai: GLM', 'api.z.ai open.bigmodel.cn'),
  copilot: on('GitHub Copilot', '*.githubcopilot.com copilot-proxy.githubusercontent.com'),
  cursor: on('Cursor', 'api2.cursor.sh api3.cursor.sh *.api5.cursor.sh cursor.com'),

  // IDE services
  jetbrains: on(
    'JetBrains: plugins, runtimes, packages, AI',
    'plugins.jetbrains.com downloads.marketplace.jetbrains.com download.jetbrains.com download-cdn.jetbrains.com cache-redirector.jetbrains.com packages.jetbrains.team www.jetbrains.com data.services.jetbrains.com api.jetbrains.ai api.app.prod.grazie.aws.intellij.net account.jetbrains.com',
  ),
  vscode: on(
    'Visual Studio Code: server and extensions',
    'update.code.visualstudio.com code.visualstudio.com vscode.download.prss.microsoft.com marketplace.visualstudio.com *.vsassets.io open-vsx.org',
  ),

  // too wide for most builds: only by name
  docker: off(
    'container registries',
    'docker.io *.docker.io production.cloudflare.docker.com download.docker.com quay.io *.quay.io registry.k8s.io mcr.microsoft.com gcr.io ghcr.io public.ecr.aws',
  ),
  huggingface: off('Hugging Face: models and data', 'huggingface.co *.huggingface.co hf.co *.hf.co'),
  playwright: off('browsers for Playwright', 'cdn.playwright.dev playwright.download.prss.microsoft.com'),
  chrome: off(
    'Chrome for Testing, as Puppeteer fetches it',
    'googlechromelabs.github.io storage.googleapis.com/chrome-for-testing-public/*',
  ),
  cypress: off('Cypress', 'download.cypress.io cdn.cypress.io'),
};

export const PRESET_NAMES: readonly string[] = Object.keys(PRESETS);
const DEFAULT_NAMES = PRESET_NAMES.filter((name) => PRESETS[name]?.default === true);

function words(text: string): readonly string[] {
  return text.split(' ');
}
