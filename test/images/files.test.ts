// test/images/files.test.ts: parsing of Dockerfiles, devcontainer.json and the answers of engines.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { agentNamed } from '../../src/agents/agents.ts';
import { readImage, type Image } from '../../src/sandbox/spec/image.ts';
import { agentInImage, agentsLabel, baseDockerfile } from '../../src/images/wanted/base-image.ts';
import { readDevcontainer, wantedImage } from '../../src/images/wanted/project-image.ts';
import {
  fetchedByEngine,
  imageFromFile,
  isTaken,
  readDockerfile,
  readOtherwise,
  runWithOptions,
} from '../../src/images/wanted/dockerfile.ts';
import { hasOurNames, isOurWork, unusedImages } from '../../src/housekeeping/unused-images.ts';

test.each([
  ['FROM debian:12\nRUN make\n', ['debian:12'], []],
  ['# c\nFROM --platform=linux/amd64 a AS one\nFROM one\nFROM scratch\nCOPY --from=one /x /y\n', ['a'], []],
  ['FROM a\nCOPY --chown=1:1 ./src/*.ts lib/ /app/\nADD ["a b", "c"]\n', ['a'], ['src/*.ts', 'lib', 'a b']],
  ['FROM a\ncopy one \\\n  # not this\n  two /to/\n', ['a'], ['one', 'two']],
  ['FROM a\nCOPY . /app\n', ['a'], null],
  ['FROM a\nARG WHICH\nCOPY $WHICH /app\n', ['a'], null],
  ['ARG TAG=1\nFROM b:${TAG}\nADD https://example.com/x /x\n', ['b:1'], []],
  ['ARG A="x" B=y\nARG C=$A/${B}\nFROM $C:${D:-2} AS s\nARG A=z\nFROM $A\nFROM s\n', ['x/y:2', 'x'], []],
  ['ARG A\nFROM b:$A\nFROM ${B:+c}\n', ['b:$A', '${B:+c}'], []],
  // The base of the last stage decides about fetching, so a name that ags may read differently than the builder becomes unknown.
  ['ARG A="a"-b/c\nFROM $A\n', ['$'], []],
  ["ARG A='a'\\b\nFROM ${A:-c}\n", ['$'], []],
  ['ARG A=a\\\n-b/c\nFROM $A\n', ['a-b/c'], []],
  ['ARG A=a\nARG A\nFROM ${A}b/c\n', ['${A}b/c'], []],
  ['FROM a AS b/c\nFROM b/c\n', ['a', 'b/c'], []],
])('the base images and sources of the Dockerfile %j are found', (text, from, sources) => {
  expect(readDockerfile(text)).toEqual({ from, sources });
});

test.each([
  ['ADD http://127.0.0.1/x /x'],
  ['FROM a\n\tadd --chown=1:1 https://example.com/x /x'],
  ['ADD ["http://127.0.0.1/x", "/x"]'],
  ['ADD ["http:\\u002f\\u002f127.0.0.1/x", "/x"]'],
  ['ADD git@example.com:a/b.git /x'],
  ['ARG U=http://127.0.0.1\nADD $U /x'],
  ['ADD ht\\tp:\\/\\/127.0.0.1/x /x'],
  ['ADD "http"://127.0.0.1/x /x'],
  ['AD\\\nD ht\\\n# c\n\ntp://127.0.0.1/x /x'],
  ['RUN echo \\\u00a0\nADD http://127.0.0.1/x /x'],
  ['# c\n# escape=`\nRUN echo `\nADD http://127.0.0.1/x /x'],
  ['# escape=`\nADD `\n  http://127.0.0.1/x `\n  /x'],
  ['RUN echo \\\\\nADD http://127.0.0.1/x /x'],
  ['\u0085ADD http://127.0.0.1/x /x'],
  ['ONBUILD ADD http://127.0.0.1/x /x'],
  ['ADD http://127.0.0.1/x --x'],
  ['ADD --chown=1:1 http://127.0.0.1/x --x'],
  ['ADD -- http://127.0.0.1/x --x'],
  ['ADD a\\\n\ufeff# http://127.0.0.1/x \\\n/x/'],
])('the Dockerfile %j makes the engine fetch a file', (text) => {
  expect(fetchedByEngine(text)).toMatch(/^ADD /);
});

test.each([
  ['FROM a\nADD app.tar.gz vendor/*.tar $HOME/\n'],
  ['ADD --chown=1:1 a b /to/'],
  ['ADD ["a b", "/c"]'],
  ['# ADD http://example.com/x /x\nRUN curl -O https://example.com/x && \\\n  add-user x'],
  ['COPY https: /x'],
  ['ADD a --x'],
])('the Dockerfile %j makes the engine fetch nothing', (text) => {
  expect(fetchedByEngine(text)).toBe(null);
});

test.each([
  ['FROM a\nRUN --network=host true', 'RUN --network=host true'],
  ['FROM a\n  run \\\n --mount=type=bind,from=b true', 'RUN --mount=type=bind,from=b true'],
  ['ONBUILD RUN --security=insecure true', 'RUN --security=insecure true'],
  ['# escape=`\nRUN `\n--network=host true', 'RUN --network=host true'],
  ['FROM a\nRUN npm run build -- --network=host', null],
])('in the Dockerfile %j the RUN line with options is %j', (text, line) => {
  expect(runWithOptions(text)).toBe(line);
});

test.each([
  ['FROM oci:/home/x', 'oci:/home/x'],
  ['FROM --platform=x oci:home/x', 'oci:home/x'],
  ['ARG X=oci:/home/x\nFROM $X', '$X'],
  ['ARG X=ci:/home/x\nFROM o$X AS a', 'o$X'],
  ['FROM a\nCOPY --chown=1:1 --from=docker-archive:x /a /a', 'docker-archive:x'],
  ['FROM a\nCOPY --from=docker://example.com/a /a /a', 'docker://example.com/a'],
  ['FROM a\nCOPY --fr\\om=oci:/home/x /a /a', '--fr\\om=oci:/home/x'],
  ['FROM a\nCOPY --f"ro"m=oci:/home/x /a /a', '--f"ro"m=oci:/home/x'],
  [
    'FROM localhost:5000/a/b:$TAG AS c\nFROM docker:dind\nFROM c\nFROM a@sha256:00\nFROM scratch\nCOPY --from=0 a b',
    null,
  ],
])('in the Dockerfile %j the image that may be a file of this machine is %j', (text, name) => {
  expect(imageFromFile(text)).toBe(name);
});

test.each([
  ['FROM a\n# escape=`\nRUN true \\\nFROM b AS c/d\nFROM c/d\n', null],
  ['# c\n# escape=`\nFROM a\n', '# escape=`'],
  ['  # escape=`\nFROM a\nRUN true \\\nFROM c/d\n', null],
  ['FROM a\nRUN true \\\nFROM c/d\n', 'c/d'],
  ['FROM a\nRUN true \\\u00a0\nFROM c/d\n', null],
  ['FROM a-\\\nb/c\n', null],
  ['FROM a\nRUN psql -c "select 1 \\\n  from users;"\n', null],
  ['\ufeff# escape=`\nFROM a/b AS c\nFROM c\nFROM d:1\n', null],
])('in the Dockerfile %j the line that builders may read differently is %j', (text, line) => {
  expect(readOtherwise(text)).toBe(line);
});

test('a source selects files by name, by pattern, and below a directory', () => {
  const sources = ['package*.json', 'src', 'a/?.txt'];
  const selected = ['package.json', 'package-lock.json', 'src/deep/x.ts', 'a/b.txt'];
  expect(selected.filter((path) => isTaken(path, sources))).toEqual(selected);
  expect(['packages/x.json', 'source', 'a/bc.txt', 'x/package.json'].filter((path) => isTaken(path, sources))).toEqual(
    [],
  );
});

test('any number of stars is matched, without catastrophic backtracking', () => {
  expect(isTaken('aXbYc', ['a*b*c'])).toBe(true);
  expect(isTaken('abc', ['a**b?'])).toBe(true);
  expect(isTaken('abcd', ['a*b?'])).toBe(false);
  expect(isTaken('a.c', ['a?c*'])).toBe(true);
  expect(isTaken('', ['*'])).toBe(true);
  // Naive backtracking would not end.
  expect(isTaken('a'.repeat(250), [`${'*a'.repeat(120)}*b`])).toBe(false);
});

test('an image or a Dockerfile is read from a devcontainer.json with comments', () => {
  expect(readDevcontainer('{ "image": "mcr.example/base:1", /* x */ "features": {}, }')).toEqual({
    kind: 'reference',
    reference: 'mcr.example/base:1',
  });
  expect(
    readDevcontainer('{ "name": "a // b, }", "build": { "dockerfile": "Dockerfile", "context": ".." } } // end'),
  ).toEqual({
    kind: 'dockerfile',
    path: '.devcontainer/Dockerfile',
    context: '.',
  });
});

test.each([
  ['[]', /has no keys/],
  ['{ "image": "--privileged" }', /not the name of an image/],
  ['{ "image": ["a"] }', /not the name of an image/],
  ['{ "build": { "dockerfile": "../../etc/passwd" } }', /leads out of the project/],
  ['{ "build": { "dockerfile": "/etc/passwd" } }', /not a path in the project/],
  ['{ "build": { "dockerfile": "D", "context": "../.." } }', /leads out of the project/],
  ['{ "build": { "dockerfile": "${localEnv:HOME}" } }', /not a path in the project/],
  ['{ "dockerComposeFile": "c.yaml" }', /uses services/],
  ['{ "image": "a" ', /not JSON/],
  ['{}', /neither an image nor a Dockerfile/],
])('the devcontainer.json %j is refused', (text, why) => {
  expect(() => readDevcontainer(text)).toThrow(why);
});

let dir = '';
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function project(files: Record<string, string>): string {
  dir = mkdtempSync('/tmp/ags-image-files-');
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), content);
  }
  return dir;
}
const hiding = { hide: ['.env', 'keys/'], reveal: [] };

test('the name of a built image changes with the Dockerfile and its sources, and with nothing else', () => {
  const at = project({
    Dockerfile: 'FROM a\nCOPY src /\n',
    'src/a': '1',
    other: '1',
    'src/.env': 'x',
    'src/keys/k': 'x',
    'src/node_modules/m': 'x',
  });
  const key = (): string => wantedImage(at, { kind: 'dockerfile', path: 'Dockerfile' }, hiding).reference;
  const first = key();
  expect(wantedImage(at, { kind: 'dockerfile', path: 'Dockerfile' }, hiding)).toMatchObject({
    files: ['src/a'],
    from: ['a'],
  });
  for (const path of ['other', 'src/.env', 'src/keys/k', 'src/node_modules/m']) {
    writeFileSync(join(at, path), 'changed');
    expect([path, key()]).toEqual([path, first]);
  }
  writeFileSync(join(at, 'src/a'), '2');
  const second = key();
  writeFileSync(join(at, 'Dockerfile'), 'FROM a\nCOPY src /\nRUN x\n');
  expect(new Set([first, second, key()]).size).toBe(3);
});

test('a Dockerfile that leads out of the project is refused', () => {
  const at = project({ x: '' });
  symlinkSync('/etc/hostname', join(at, 'Dockerfile'));
  expect(() => wantedImage(at, { kind: 'dockerfile', path: 'Dockerfile' }, hiding)).toThrow(/not in the project/);
});

test.each([
  ['a hidden directory', '../keys'],
  ['a directory below a hidden one', '../keys/deep'],
  ['a link to a hidden directory', '../shown'],
])('%s cannot be the context of an image', (_what, context) => {
  const at = project({
    '.devcontainer/devcontainer.json': JSON.stringify({ build: { dockerfile: 'Dockerfile', context } }),
    '.devcontainer/Dockerfile': 'FROM a\nCOPY . /\n',
    'keys/k': 'x',
    'keys/deep/k': 'x',
  });
  symlinkSync('keys/deep', join(at, 'shown'));
  expect(() => wantedImage(at, { kind: 'devcontainer' }, hiding)).toThrow(/hidden from sandboxes/);
  const revealed = wantedImage(at, { kind: 'devcontainer' }, { ...hiding, reveal: ['keys/'] });
  expect(revealed).toMatchObject({ files: expect.arrayContaining([expect.stringMatching(/k$/)]) });
});

test('a hidden file stays hidden if its directory is reached by a link', () => {
  const at = project({
    '.devcontainer/devcontainer.json': '{ "build": { "dockerfile": "Dockerfile", "context": "../shown" } }',
    '.devcontainer/Dockerfile': 'FROM a\nCOPY . /\n',
    'src/config/token': 'x',
    'src/config/plain': 'x',
  });
  symlinkSync('src/config', join(at, 'shown'));
  expect(wantedImage(at, { kind: 'devcontainer' }, { hide: ['src/config/token'], reveal: [] })).toMatchObject({
    files: ['plain'],
  });
});

test('malformed parts of an image’s configuration are ignored', () => {
  const id = `sha256:${'a'.repeat(64)}`;
  const Config = {
    Env: ['PATH=/bin', 'ODD NAME=1', 'ALONE', 7, 'NUL=\0'],
    Volumes: { '/data': {} },
    Labels: { a: 'b', c: 1 },
    Entrypoint: ['/run.sh', 7],
    Cmd: ['serve'],
    WorkingDir: '/srv',
    OnBuild: ['RUN make', 7],
  };
  expect(readImage('x', { Id: id, Size: 5, Config })).toEqual({
    reference: 'x',
    id,
    env: { PATH: '/bin', ALONE: '' },
    variables: ['PATH', 'ODD NAME', 'ALONE', 'NUL'],
    volumes: ['/data'],
    command: ['/run.sh', 'serve'],
    workdir: '/srv',
    onBuild: ['RUN make'],
    labels: { a: 'b' },
    bytes: 5,
  } satisfies Image);
  for (const wrong of [null, {}, { Id: 'sha256:xyz' }])
    expect(() => readImage('x', wrong)).toThrow(/reports no ID for the image/);
});

test('the base image pins versions, contains the chosen agents, and lists them in a label', () => {
  const agents = ['codex', 'gemini'].map((name) => agentNamed(name)).filter((agent) => agent !== undefined);
  const text = baseDockerfile({ from: 'sha256:x', arch: 'x64', agents });
  for (const { install } of agents) expect(text).toContain(` ${install?.package}@${install?.version}`);
  expect(text).toMatch(/^FROM sha256:x\n/);
  expect(text).toMatch(/USER 1001:1001/);
  const labels = { 'ags.agents': agentsLabel(agents) };
  expect(agentInImage(labels, 'codex')).toEqual({ version: agents[0]?.install?.version });
  expect([
    agentInImage(labels, 'claude'),
    agentInImage({}, 'codex'),
    agentInImage({ 'ags.agents': 'codex@$(x)' }, 'codex'),
  ]).toEqual([null, null, null]);
});

test('unused images are removed; those of tasks, the base and the newest of a project are kept', () => {
  const day = 24 * 3600 * 1000;
  const make = (id: string, what: string, ageDays: number, more: { project?: string; names?: string[] } = {}) => ({
    reference: id,
    id,
    env: {},
    variables: [],
    volumes: [],
    command: [],
    workdir: '/',
    onBuild: [],
    bytes: 1,
    what,
    createdAtMs: 100 * day - ageDays * day,
    names: more.names ?? [id],
    digests: [],
    labels: more.project === undefined ? {} : { 'ags.project': more.project },
  });
  const images = [
    make('base', 'base', 50),
    make('old-base', 'base', 60, { names: [] }),
    make('skeleton', 'skeleton', 2),
    make('fresh-skeleton', 'skeleton', 0.5),
    make('new', 'project', 1, { project: '/p' }),
    make('old', 'project', 2, { project: '/p' }),
    make('used', 'project', 3, { project: '/p' }),
    make('lost', 'project', 1, { project: '/gone' }),
  ];
  const gone = unusedImages(images, new Set(['used']), 100 * day, (path) => path === '/p');
  expect(gone.map(({ image }) => image.id)).toEqual(['old-base', 'skeleton', 'old', 'lost']);
});

test('an image built on one of ags is never cleaned up, whatever its name', () => {
  const ours = 'ags-base@sha256:0';
  expect(
    [
      { names: ['ags-base:latest'], digests: [] },
      { names: ['localhost/ags-base:latest'], digests: [`localhost/${ours}`] },
      { names: [], digests: ['registry.test/team/app@sha256:0'] },
      { names: ['ags-base:latest'], digests: ['registry.test/ags-base@sha256:0'] },
      { names: ['ags-base:latest', 'app:1'], digests: [ours] },
      { names: [], digests: [] },
    ].map(hasOurNames),
  ).toEqual([true, true, false, false, false, null]);
  const base = { what: 'base', labels: { 'ags.user': '0' } };
  const docker = ['/bin/sh -c #(nop)  LABEL ags.user=0', '/bin/sh -c #(nop)  LABEL ags.image=base'];
  const podman = ['/bin/sh -c #(nop) LABEL "ags.user"="0"', '/bin/sh -c #(nop) LABEL "ags.image"="base"'];
  const imported = { what: 'debian', labels: { 'ags.user': '0' } };
  expect([
    isOurWork(base, docker),
    isOurWork(base, podman),
    isOurWork(base, ['/bin/sh -c #(nop)  ENV A=b', ...docker]),
    isOurWork(base, ['sh', ...podman]),
    isOurWork(base, ['']),
    isOurWork(base, []),
    isOurWork(imported, ['']),
    isOurWork(imported, ['sh', '']),
  ]).toEqual([true, true, false, false, false, false, true, false]);
});
