// test/sandbox/podman.full.test.ts: Podman only: leftovers of a killed runner, cleanup, and the plan.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { findEngine } from '../../src/sandbox/engine/find-engine.ts';
import { machineMark } from '../../src/sandbox/engine/owner.ts';
import { processesWith } from '../attacks/host-view.ts';
import { type Caller, CALLERS, createMachine, ROOTS_USER, giveTo, type Machine, ONE } from '../harness.ts';
import { createPodmanUser, HAS_PODMAN, podman, type PodmanUser } from './podman-user.ts';

let user: PodmanUser | undefined;
let machine: Machine | undefined;
beforeAll(() => {
  if (HAS_PODMAN) user = createPodmanUser('ags-podman');
});
afterAll(() => user?.[Symbol.dispose]());
afterEach(() => machine?.[Symbol.dispose]());

const PODMAN = ['--backend', 'podman'];

/** Containers of this task, and processes with the name of one. */
function left(of: Machine, task: string): string[] {
  return [
    ...podman(of, 'ps', '--all', '--quiet', '--filter', `label=ags.run=${task}`).split('\n'),
    ...processesWith(`ags-${task}-`).map((pid) => `process ${pid}`),
  ].filter((line) => line !== '');
}

const make = (caller: Caller): Machine => (machine = createMachine(caller, { user }));

describe.runIf(HAS_PODMAN).each(CALLERS.map((caller) => ({ caller })))(
  'a container of Podman, as $caller,',
  ({ caller }) => {
    test('ends when its ags is killed, and leaves nothing behind', async () => {
      const here = make(caller);
      const child = here.start(['exec', ...PODMAN, '--', 'sh', '-c', 'echo up; sleep 600']);
      await new Promise<void>((resolve) => child.stdout?.on('data', () => resolve()));
      const [task = ''] = here.tasks();
      // The container, its monitor (conmon) and the helper that holds its network.
      expect(left(here, task).length).toBeGreaterThanOrEqual(3);
      child.kill('SIGKILL');
      for (const end = Date.now() + 20_000; left(here, task).length > 0 && Date.now() < end;) await sleep(100);
      expect(left(here, task)).toEqual([]);
    });

    test('that was created but never started is removed by its label, unless its owner is alive', async () => {
      const here = make(caller);
      await here.ags(['exec', ...PODMAN, '--network', 'off', '--', 'true']);
      const image = podman(here, 'images', '--quiet', '--filter', 'label=ags.image=skeleton').split('\n')[0] ?? '';
      const runOf = (at: number): string => `cut-off-${process.pid}-${at}`;
      const create = (owner: string, at: number): string =>
        podman(
          here,
          'create',
          '--name',
          `ags-cut-off-${process.pid}-${/\d+(?=:)/.exec(owner)?.[0]}-x${at}`,
          '--label',
          `ags.run=${runOf(at)}`,
          '--label',
          `ags.owner=${owner}`,
          image,
          '/nothing',
        );
      const stat = readFileSync('/proc/self/stat', 'utf8');
      const ticks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
      const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
      const ours = `${machineMark()}.${here.uid}`;
      const [mine, foreign] = [
        create(`${ours}/${process.pid}:${boot}:${ticks}`, 1),
        podman(here, 'create', '--label', `ags.owner=${ours}/999999999:x:1\n`, image, '/nothing'),
      ];
      try {
        // Any other ags of the user may remove it first; then this cleanup does not print it.
        let [at, dead, said] = [9, '', ''];
        do {
          at += 1;
          dead = create(`${ours}/999999999:x:1`, at);
          said = (await here.ags(['cleanup', '--yes'])).stdout;
        } while (!said.includes(runOf(at)) && at < 19);
        expect(said).toContain(runOf(at));
        const there = podman(here, 'ps', '--all', '--quiet', '--no-trunc').split('\n');
        expect([dead, mine, foreign].map((id) => there.includes(id))).toEqual([false, true, true]);
      } finally {
        for (const id of [mine, foreign]) podman(here, 'rm', '--force', id);
      }
    });

    test('has every protection on its command line, and the plan names who enforces its limits', async () => {
      const here = make(caller);
      const { stdout } = await here.ags(['plan', ...PODMAN, '--json', '--', 'true']);
      const { argv, beside, label } = JSON.parse(stdout) as { argv: string[]; label: string; beside: object[] };
      const pairs = argv.map((word, at) => `${word} ${argv[at + 1]}`);
      for (const part of ['--cap-drop ALL', '--security-opt no-new-privileges', '--ipc none', '--cgroupns private'])
        expect(pairs).toContain(part);
      expect(argv).toEqual(expect.arrayContaining(['--read-only', '--read-only-tmpfs=false']));
      expect(pairs).toContain('--network host');
      expect(pairs.includes('--userns keep-id')).toBe(caller === 'user');
      expect(pairs).toContain(
        `--user ${caller === 'user' ? `${here.uid}:${here.uid}` : `${ROOTS_USER}:${ROOTS_USER}`}`,
      );
      expect(beside).toHaveLength(1);
      // On cgroup v1 only root can limit memory.
      const groups =
        caller === 'root'
          ? /^podman · overlay .* cgroup of the engine$/
          : /^podman · overlay .*(no cgroup · memory watched|cgroup of the engine)$/;
      expect(label).toMatch(groups);
    });

    test('leaves changes that can be reviewed as usual', async () => {
      const here = make(caller);
      const run = await here.ags([
        'exec',
        ...PODMAN,
        '--review',
        'later',
        '--',
        'sh',
        '-c',
        'rm README.md; echo new > src/b.txt',
      ]);
      expect([run.code, run.stderr.includes('2 files changed')]).toEqual([0, true]);
      const review = await here.ags(['review', here.tasks()[0] ?? '', '--accept-all']);
      expect([review.code, here.has('README.md'), here.read('src/b.txt')]).toEqual([0, false, 'new\n']);
    });
  },
);

describe.runIf(HAS_PODMAN)('Podman is not used', () => {
  test('by a user without subordinate IDs, with a hint', () => {
    const nobody = { env: {}, uid: 4_000_000, userName: 'nobody-here' };
    expect(() => findEngine('podman', nobody, true)).toThrow(/\/etc\/subuid and \/etc\/subgid do not name you/);
    expect(findEngine('podman', nobody, false)).toBeNull();
  });

  test('on another machine', () => {
    const away = { env: { CONTAINER_HOST: 'ssh://elsewhere' }, uid: 0, userName: 'root' };
    expect(() => findEngine('podman', away, true)).toThrow('The engine must run on this machine.');
  });

  test('for a project whose ags.yaml asks for it, without the approval of the user', async () => {
    const here = make(ONE);
    here.write('ags.yaml', 'backend: podman\n');
    giveTo(here.project, here.uid);
    const { code, stderr } = await here.ags(['exec', '--', 'true']);
    expect([code === 0, stderr.includes('backend: build its sandboxes with podman')]).toEqual([false, true]);
  });
});
if (!HAS_PODMAN) test.skip('Podman is not installed here', () => undefined);
