// review/lane-rules.ts: rules, as data, for files that take effect by their name, and for changes that are shown folded. To teach ags a new tool, add its file
// here (or in host-rules.ts) and an example to test/review/lanes.test.ts.
// Invariant: in doubt, a rule says "host". Patterns match at any depth and in any spelling: see path-pattern.ts.

import { HOST_RULES, type LaneRule } from './host-rules.ts';
import { paths } from './path-pattern.ts';

export const LANE_RULES: readonly LaneRule[] = [
  ...HOST_RULES,
  {
    id: 'github-workflow',
    lane: 'ci',
    content: 'workflow',
    reason: 'Runs in CI with the permissions of the repository.',
    match:
      paths(`.github/workflows/** .github/actions/** action.yml action.yaml .gitea/workflows/** .forgejo/workflows/** .gitea/actions/**
      .forgejo/actions/**`),
  },
  {
    id: 'ci',
    lane: 'ci',
    content: 'workflow',
    reason: 'Runs in CI with the secrets of the project.',
    match:
      paths(`.gitlab-ci.* *.gitlab-ci.yml *.gitlab-ci.yaml .gitlab-ci/** .gitlab/** .circleci/** circle.yml azure-pipelines*
      .azure-pipelines/** .azuredevops/** .pipelines/** .vsts-ci.yml Jenkinsfile Jenkinsfile.* *.Jenkinsfile .jenkins/**
      jenkins/*.groovy .buildkite/** buildkite.y* .travis.yml .travis/** .drone.* .drone/** .woodpecker.* .woodpecker/**
      appveyor.yml .appveyor.yml bitbucket-pipelines.yml .cirrus.* .semaphore/** codefresh.yml wercker.yml .teamcity/**
      cloudbuild.* buildspec* .builds/** .build.yml .tekton/** .harness/** .evergreen.* bors.toml .zuul.* zuul.d/** .ci/**
      .packit.y* .readthedocs.* .shippable.yml .scrutinizer.yml .screwdriver.yml screwdriver.yaml .cds/** .dagger/** dagger.json
      .earthly/**`),
  },
  {
    id: 'repository-rules',
    lane: 'ci',
    reason: 'Decides who must review, or what bots may merge, in this repository.',
    match:
      paths(`CODEOWNERS renovate.json renovate.json5 .renovaterc* renovate-*.json dependabot.y* .dependabot/** .mergify.* .mergify/**
      .kodiak.toml .github/settings.yml .github/*.rego .github/labeler.yml .github/auto*.y* .bulldozer.yml .policy.yml
      .pullapprove.* .lgtm .probot/** OWNERS OWNERS_ALIASES .asf.yaml .allstar/** .minder/** .dependency-cruiser-ci.* .pyup.yml
      greenkeeper.json .whitesource .updatecli/** updatecli.d/**`),
  },
  {
    id: 'secret-file',
    lane: 'ci',
    reason: 'A file that usually holds credentials or keys.',
    match:
      paths(`.env .env.* .env-* *.env .flaskenv .dev.vars* *.pem *.key *.p12 *.pfx *.jks *.keystore *.truststore *.kdbx *.ppk *.asc *.gpg
      *.pgp *.age *.crt *.cer *.der *.csr id_rsa* id_dsa* id_ecdsa* id_ed25519* known_hosts authorized_keys .netrc _netrc .pgpass
      .htpasswd .git-credentials .pypirc .gem/** .aws/** .azure/** .gcloud/** .config/gcloud/** .kube/** kubeconfig* *.kubeconfig
      .dockercfg .dockerconfigjson credentials credentials.json credentials.yml* credentials.xml credentials.toml
      *-credentials.json *_credentials.json service-account* serviceaccount* secrets secrets.yaml secrets.yml secrets.json
      secrets.toml secrets.enc* *.secret *.secrets *-secret.y* *-secrets.y* .secrets/** secrets/*.yaml secrets/*.yml
      secrets/*.json .sops.yaml .vault-pass* vault.y* client_secret* *.mobileprovision *.ovpn .s3cfg .boto .terraformrc
      terraform.rc *.tfstate *.tfstate.* *.tfvars *.tfvars.json wp-config.php master.key local.settings.json`),
  },
  {
    id: 'infrastructure',
    lane: 'ci',
    reason: 'Describes servers or services that are changed with credentials.',
    match:
      paths(`*.tf *.tf.json *.tofu *.hcl terraform/** ansible.cfg ansible/** playbook*.y* playbooks/** roles/*/tasks/**
      roles/*/handlers/** inventory inventory.ini inventory.yml inventory.yaml inventory/*.yml inventory/*.ini group_vars/**
      host_vars/** k8s/** kubernetes/** kustomization.y* Chart.yaml charts/*/templates/** helm/** helmfile* values.yaml
      values.*.yaml values-*.yaml Pulumi.* cdk.json cdk.context.json *.bicep cloudformation* *.cfn.* template.y* samconfig.*
      serverless.* *.nomad *.pkr.* argocd/** .argocd/** fluxcd/** manifests/*.yaml manifests/*.yml *.service *.timer *.socket
      *.mount crontab crontab.* cron.d/** *.cron supervisord.conf nginx.conf *.nginx Caddyfile Dockerrun* .ebextensions/**
      .platform/** cloud-init* user-data ignition.* *.ign *.salt cookbooks/** *.pp puppet/**`),
  },
  {
    id: 'deployment',
    lane: 'ci',
    reason: 'Decides what is published or deployed, and how.',
    match:
      paths(`deploy deploy*.js deploy*.mjs deploy*.cjs deploy*.ts deploy*.py deploy*.rb deploy*.yml deploy*.yaml deploy*.json
      deploy*.toml *-deploy.yml *-deploy.yaml deploy/** .deploy/** release.y* release.sh netlify.toml .netlify/** vercel.json
      .vercel/** now.json render.yaml fly.toml fly.*.toml app.yaml app.json railway.* wrangler.* firebase.json .firebaserc
      amplify.yml amplify/backend/** apprunner.yaml captain-definition kamal/** .kamal/** config/deploy.yml .goreleaser*
      goreleaser.* .changeset/config.json release-please-config.json .release-please-manifest.json .gitversion.*
      dist-workspace.toml copilot/**/manifest.yml .do/** snapcraft.yaml debian/** *.spec PKGBUILD *.ebuild
      sonar-project.properties .codecov.yml codecov.yml`),
  },
  {
    id: 'lockfile',
    lane: 'look',
    content: 'lockfile',
    reason: 'Fixes which code an install downloads.',
    match:
      paths(`package-lock.json npm-shrinkwrap.json .package-lock.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb Cargo.lock poetry.lock
      uv.lock Pipfile.lock pdm.lock pylock.toml pylock.*.toml Gemfile.lock gems.locked composer.lock go.sum go.work.sum *.lockfile
      packages.lock.json paket.lock mix.lock Podfile.lock Cartfile.resolved Package.resolved pubspec.lock flake.lock deno.lock
      conan.lock pixi.lock conda-lock.yml MODULE.bazel.lock rebar.lock stack.yaml.lock cabal.project.freeze mise.lock devbox.lock
      *.terraform.lock.hcl Chart.lock shard.lock buf.lock`),
  },
  {
    id: 'dependencies',
    lane: 'look',
    content: 'dependencies',
    reason: 'Names the code of others that this project uses.',
    match:
      paths(`requirements*.txt requirements*.in requirements/*.txt requirements/*.in constraints*.txt Pipfile go.mod go.work Cargo.toml
      pubspec.yaml environment.yml environment.yaml conda.yml vcpkg.json vcpkg-configuration.json cpanfile elm.json shard.yml
      packages.config paket.dependencies Cartfile *.cabal.project DESCRIPTION renv.lock Project.toml Manifest.toml buf.yaml
      buf.gen.yaml import_map.json importmap.json importmap.rb libs.versions.toml`),
  },
  {
    id: 'version-pin',
    lane: 'look',
    reason: 'Chooses the version of a tool that others then run.',
    match:
      paths(`.nvmrc .node-version .python-version .ruby-version .ruby-gemset .java-version .go-version .terraform-version .bazelversion
      .php-version .perl-version .swift-version .crystal-version .bun-version .deno-version .zigversion global.json runtime.txt`),
  },
  {
    id: 'compiler-config',
    lane: 'look',
    reason: 'Redirects imports or loads plugins of compilers and language servers.',
    match:
      paths(`tsconfig.json tsconfig.*.json tsconfig-*.json jsconfig.json .swiftlint.yml rustfmt.toml .rustfmt.toml clippy.toml
      .clang-tidy .golangci.* .rubocop.yml phpstan.neon* psalm.xml* phpunit.xml* .php-cs-fixer* rector.php`),
  },
  {
    id: 'hides-files',
    lane: 'look',
    reason: 'Decides which files git and other tools do not show or publish.',
    match:
      paths(`.gitignore .ignore .rgignore .npmignore .dockerignore .git-blame-ignore-revs .mailmap .gcloudignore .slugignore
      .vercelignore`),
  },
  {
    id: 'scanner-exceptions',
    lane: 'look',
    reason: 'Decides what a security scanner or linter does not report.',
    match:
      paths(`.snyk .trivyignore* .gitleaks.toml .gitleaksignore .secretlintrc* .secretlintignore .secrets.baseline .semgrepignore
      .semgrep.yml .semgrep/** .checkov.y* .bandit .grype.yaml .nsprc audit-ci.* osv-scanner.toml .eslintignore deny.toml
      zizmor.yml`),
  },
  {
    id: 'loads-code',
    lane: 'look',
    reason: 'A data format that can run code when it is loaded.',
    match:
      paths(`*.pkl *.pickle *.joblib *.dill *.pt *.ckpt *.npy *.h5 *.keras *.rds *.rda *.rdata *.ser *.ipynb *.docm *.xlsm *.pptm *.dotm
      *.xltm *.mht *.chm`),
  },
  {
    id: 'archive',
    lane: 'look',
    reason: 'An archive; what is inside is not shown here.',
    match:
      paths(`*.zip *.tar *.tar.* *.tgz *.tbz2 *.txz *.gz *.bz2 *.xz *.zst *.7z *.rar *.whl *.gem *.crate *.nupkg *.egg *.iso *.img
      *.qcow2 *.cab *.rpm.gz *.box`),
  },
  {
    id: 'generated',
    lane: 'look',
    reason: 'Usually generated: compare it with what the build makes, not by eye.',
    match: paths(
      '*.min.js *.min.mjs *.min.cjs *.min.css *.bundle.js *.chunk.js *.map dist/** *.generated.* *.pb.go *_pb2.py',
    ),
  },
];

/** Files that hold tests: the reviewer is told when tests are removed or disabled. */
export const TEST_FILES =
  paths(`test/** tests/** __tests__/** spec/** specs/** e2e/** *.test.* *.spec.* *-test.* *-spec.* *_test.* *_spec.* *.cy.*
  test_*.py *test.java *tests.java *test.kt *tests.kt *test.cs *tests.cs *test.swift *tests.swift *test.php *test.scala
  *spec.scala *.feature *.bats`);

/** Pictures, sound and fonts: no program runs their content. */
export const MEDIA_FILES =
  paths(`*.png *.jpg *.jpeg *.gif *.webp *.avif *.ico *.icns *.bmp *.tif *.tiff *.heic *.psd *.mp3 *.mp4 *.m4a *.wav *.ogg *.oga
  *.ogv *.flac *.webm *.mov *.woff *.woff2 *.ttf *.otf *.eot *.pdf`);

const LOCK_FILES =
  /(^|\/)(package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?|Cargo\.lock|Gemfile\.lock|poetry\.lock|uv\.lock|Pipfile\.lock|composer\.lock|go\.sum|flake\.lock|mix\.lock|Podfile\.lock|packages\.lock\.json)$/;
const GENERATED = /(\.min\.(js|css)|\.map|\.snap|\.pb\.go|_pb2\.py|\.generated\.\w+)$|(^|\/)(dist|build|vendor)\//;
const MANY_LINES = 800;

/** The reason in a word or two; null if the change is shown unfolded. */
export function foldedBecause(file: {
  readonly path: string;
  readonly kind: string;
  readonly added: number | null;
  readonly removed: number | null;
}): string | null {
  if (LOCK_FILES.test(file.path)) return 'lock file';
  if (GENERATED.test(file.path)) return 'generated';
  if (file.added === null || file.removed === null) return 'not text';
  if (file.kind === 'deleted') return 'deleted';
  if (file.kind === 'renamed' && file.added + file.removed === 0) return 'only renamed';
  return file.added + file.removed > MANY_LINES ? 'large' : null;
}
