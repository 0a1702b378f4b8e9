// test/transfer/cut-off.full.test.ts: an import that is killed, or meets a full disk, leaves no task, no branch and no log.
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDisk } from '../e2e/disk.ts';
import { type Caller, CALLERS, giveTo, IS_ROOT, ONE } from '../harness.ts';
import { blob, makePack, objectId, tree } from '../git/hostile-pack.ts';
import { createAgentMachine, type AgentMachine } from '../agent-run/place.ts';
import { readParts, writeParts } from './parts.ts';

const CALLER: Caller = ONE;

const list = (path: string): string[] => (existsSync(path) ? readdirSync(path).toSorted() : []);

/** Kills the import `afterMs` after its start, or after it recorded its plan. */
async function killed(
  machine: AgentMachine,
  args: string[],
  since: 'start' | 'journal',
  afterMs: number,
): Promise<void> {
  const child = machine.start(args);
  const ended = new Promise((resolve) => child.on('exit', resolve));
  child.stdout?.resume();
  child.stderr?.resume();
  child.stdin?.end();
  const isWritten = (): boolean =>
    list(join(machine.stateDir, 'tasks')).some((name) => {
      const journal = join(machine.stateDir, 'tasks', name, 'import.json');
      return name.startsWith('.new-') && existsSync(journal) && readText(journal).includes('refs/heads/');
    });
  if (since === 'journal') while (child.exitCode === null && !isWritten()) await sleep(1);
  await Promise.race([sleep(afterMs), ended]);
  child.kill('SIGKILL');
  await ended;
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

let source: (AgentMachine & { readonly file: string }) | null = null;
beforeAll(async () => {
  const machine = createAgentMachine(CALLER);
  source = Object.assign(machine, { file: join(machine.home, 'work.ags') });
  await machine.runDemo('work', 'write: a.txt one // commit: Own // write: b.txt two // fetch: https://no.example/');
  expect(await machine.ags(['export', 'work', source.file])).toMatchObject({ code: 0 });
}, 60_000);
afterAll(() => source?.[Symbol.dispose]());

test('an import killed at any moment leaves a whole task or none, and cleanup removes the rest', async () => {
  if (source === null) throw new Error('there is nothing to import');
  const machine = source;
  const into = join(machine.home, 'made');
  let cutOff = 0;
  for (let round = 0; round < 10; round++) {
    const since = round % 2 === 0 ? 'journal' : 'start';
    const place = round % 4 > 1 ? ['--into', `${into}-${round}`] : [];
    await killed(machine, ['import', machine.file, ...place], since, since === 'journal' ? round : 100 + 50 * round);
    const tasks = list(join(machine.stateDir, 'tasks'));
    cutOff += tasks.filter((name) => name.startsWith('.new-')).length;
    const others = tasks.filter((one) => !one.startsWith('.') && one !== 'work');
    for (const name of others) {
      // An existing task is complete.
      expect(machine.run(name)).toMatchObject({ state: 'ready', result: { files: 2 } });
      expect(machine.events(name).map(({ type }) => type)).toContain('run.imported');
      expect(await machine.ags(['diff', name, '--name-only'])).toMatchObject({ code: 0, stdout: 'a.txt\nb.txt\n' });
      expect((await machine.ags(['rm', name, '-y'])).code).toBe(0);
    }
    const cleaned = await machine.ags(['cleanup', '--yes']);
    expect(cleaned.code, cleaned.stderr).toBe(0);
    expect(list(join(machine.stateDir, 'tasks'))).toEqual(['work']);
    expect(machine.git('for-each-ref', '--format=%(refname)', 'refs/heads/ags')).toBe('refs/heads/ags/work\n');
    expect(list(machine.home).filter((name) => name.endsWith('.part'))).toEqual([]);
    // A log outlives its task, but an unfinished import has none.
    const logs = list(join(machine.stateDir, 'network')).filter((name) => name.startsWith('work-2-'));
    if (others.length === 0) expect(logs).toEqual([]);
    for (const name of logs) rmSync(join(machine.stateDir, 'network', name));
  }
  expect(cutOff).toBeGreaterThan(0);
});

// Only root can mount.
test.runIf(IS_ROOT).each(CALLERS)(
  'as %s: a full disk is reported in one sentence, and nothing is left behind',
  async (caller) => {
    using machine = createAgentMachine(caller);
    const parts = readParts(source?.file ?? '');
    const big = blob(randomBytes(3_000_000));
    const top = tree([['100644', 'big.bin', big]]);
    const who = 'author a <a@b> 0 +0000\ncommitter a <a@b> 0 +0000\n\nbig\n';
    const commit = {
      type: 'commit',
      data: Buffer.from(`tree ${objectId(top)}\nparent ${parts.manifest.work.root}\n${who}`),
    } as const;
    parts.manifest.work.commit = objectId(commit);
    parts.members['work.pack'] = makePack([big, top, commit]);
    const file = await writeParts(machine, 'big.ags', parts);
    const place = join(machine.home, 'place');
    for (const at of [machine.stateDir, place]) mkdirSync(at, { recursive: true });
    giveTo(machine.home, machine.uid);
    // First the disk where the file is verified, then the disk of the target.
    for (const at of [machine.stateDir, place]) {
      const mount = `mount -t tmpfs -o size=2m,mode=755,uid=${machine.uid},gid=${machine.uid} tmpfs ${at}`;
      using disk = await openDisk(machine, mount);
      const look = (): string => disk.sh(`find ${machine.home} -not -path '*/.cache*' | sort`);
      disk.sh(`mkdir -p ${machine.stateDir}/tasks; chown -R ${machine.uid}:${machine.uid} ${machine.stateDir}`);
      const before = look();
      const run = await disk.ags('import', file, '--into', join(place, 'made'));
      expect(run, run.stderr).toMatchObject({ code: 9, stdout: '' });
      expect(run.stderr).toMatch(/no room left on the disk/);
      expect(look()).toBe(before);
      disk.sh(`mount -o remount,size=64m ${at}`);
      expect(await disk.ags('import', file, '--into', join(place, 'made'))).toMatchObject({ code: 0 });
      disk.sh(`rm -r ${join(place, 'made')} ${machine.stateDir}/tasks/*`);
    }
  },
);
