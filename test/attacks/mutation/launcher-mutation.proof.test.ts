// test/attacks/mutation/launcher-mutation.proof.test.ts: removes one step of the launcher at a time, and shows what then succeeds. These
// steps matter only to a caller who hands over a file, or when a directory is swapped, so no attempt of the tables needs them.
// mutation.proof.test.ts has the others.
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, closeSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Launch } from '../../../src/sandbox/native/launch.ts';
import { CALLERS, createMachine, ROOTS_USER, giveTo, type Caller, type Machine } from '../../harness.ts';
import { prepareMutant, type Mutation, type Prepared } from './mutant.ts';
import { changedProgram, LAUNCHER_STEPS } from './perl-steps.ts';
import { identity } from '../run-inside.ts';

interface Step {
  readonly name: keyof typeof LAUNCHER_STEPS;
  readonly only?: Caller;
  /** The problems that it found. */
  readonly attempt: (machine: Machine, mutation: Mutation) => Promise<string[]>;
}

const LIMIT = '/proc/sys/fs/inotify/max_user_instances';

const STEPS: readonly Step[] = [
  {
    name: 'a layer is the directory that was looked at',
    async attempt(machine, mutation) {
      const other = `${machine.project}-other`;
      execFileSync('cp', ['-a', machine.project, other]);
      writeFileSync(join(other, 'private.txt'), 'CANARY\n');
      giveTo(other, machine.uid);
      const prepared = await prepareMutant(machine, mutation, ['cat', 'private.txt']);
      renameSync(machine.project, `${machine.project}-away`);
      renameSync(other, machine.project);
      return start(machine, prepared).includes('CANARY') ? ['another directory was shown'] : [];
    },
  },
  {
    name: 'no file of the host is a stream',
    async attempt(machine, mutation) {
      const input = join(machine.home, 'input.txt');
      writeFileSync(input, 'as it was\n');
      chmodSync(input, 0o666);
      const write = 'open my $f, "+<", "/proc/self/fd/0" or exit; print $f "breach\\n"';
      start(machine, await prepareMutant(machine, mutation, ['perl', '-e', write]), input);
      return readFileSync(input, 'utf8') === 'as it was\n' ? [] : ['what was given to be read was written'];
    },
  },
  {
    name: 'a part of the watches on files',
    only: 'user',
    async attempt(machine, mutation) {
      const count = 'my $n = 0; $n++ while $n < 1000 && syscall($ARGV[0], 0) >= 0; print "got $n\\n"';
      const number = process.arch === 'arm64' ? '26' : '294';
      const said = start(machine, await prepareMutant(machine, mutation, ['perl', '-e', count, number]));
      const most = Math.floor(Number(readFileSync(LIMIT, 'utf8')) / 4) + 1;
      const got = Number(/got (\d+)/.exec(said)?.[1] ?? Number.NaN);
      return got <= most ? [] : [`it got ${got} of ${most}`];
    },
  },
  {
    name: 'no group of root',
    only: 'root',
    async attempt(machine, mutation) {
      const { argv, env } = await prepareMutant(machine, mutation, ['grep', '^Groups:', '/proc/self/status']);
      const said = start(machine, { argv: ['setpriv', '--groups=0,4', '--', ...argv], env });
      return new RegExp(String.raw`^Groups:\s+(${ROOTS_USER}\s*)?$`, 'm').test(said) ? [] : [said.trim()];
    },
  },
  {
    name: 'no mount comes back',
    only: 'root',
    async attempt(machine, mutation) {
      const { argv, env } = await prepareMutant(machine, mutation, ['true']);
      const shared = ['unshare', '--mount', '--propagation', 'shared', '/bin/sh', '-c'];
      const look = { argv: [...shared, '"$@"; cat /proc/self/mountinfo', 'sh', ...argv], env };
      return start(machine, look)
        .split('\n')
        .filter((line) => / ags-it-|\/stage\/|overlay .*userxattr/.test(line));
    },
  },
  {
    name: 'the first to go when memory is short',
    async attempt(machine, mutation) {
      const said = start(machine, await prepareMutant(machine, mutation, ['cat', '/proc/self/oom_score_adj']));
      return Number(said) >= 800 ? [] : [said.trim()];
    },
  },
];

describe.each(CALLERS)('as %s', (caller) => {
  const here = STEPS.filter(({ only }) => only === undefined || only === caller);
  test.for(here.map((step) => [step.name, step] as const))('without "%s", an attempt succeeds', async ([, step]) => {
    for (const mutation of [{}, { launch: (launch: Launch) => withScript(launch, step) }]) {
      using machine = createMachine(caller);
      const found = await step.attempt(machine, mutation);
      if ('launch' in mutation) expect(found).not.toEqual([]);
      else expect(found).toEqual([]);
    }
  });
});

function withScript(launch: Launch, { name }: Step): Launch {
  const script = launch.argv[launch.argv.indexOf('-e') + 1] ?? '';
  const changed = changedProgram(script, LAUNCHER_STEPS[name]);
  return { ...launch, argv: launch.argv.map((word) => (word === script ? changed : word)) };
}

/** The standard output of the launcher. */
function start(machine: Machine, { argv, env }: Prepared, input = '/dev/null'): string {
  const [program = '', ...args] = argv;
  const stdin = openSync(input, 'r');
  try {
    const options = { cwd: '/', env: { ...env }, ...identity(machine), timeout: 40_000 };
    const { stdout } = spawnSync(program, args, { ...options, encoding: 'utf8', stdio: [stdin, 'pipe', 'pipe'] });
    return stdout;
  } finally {
    closeSync(stdin);
  }
}
