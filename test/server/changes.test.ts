// test/server/changes.test.ts: a task's changes have an id, and files and hunks are selected by number only.
// needs: sandbox
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ApiTask } from '../../src/protocol/api/api.ts';
import type { ApiChanges, ApiFile, ApiFileText, Applied, Merged } from '../../src/protocol/api/review.ts';
import { type Caller, CALLERS, ONE } from '../harness.ts';
import { createServerMachine, type ServerMachine } from './place.ts';

const LINES = Array.from({ length: 40 }, (_, i) => `line ${i + 1}`).join('\n');
const FILES = { 'README.md': '# project\n', 'src/long.txt': `${LINES}\n`, 'old.txt': 'old\n' };
const EDIT =
  'run: sed -i -e \'2s/.*/SECOND/\' -e \'38s/.*/LAST/\' src/long.txt // write: package.json {"scripts":{"postinstall":"id"}} // write: new.txt hello // delete: old.txt';

const machines = new Map<Caller, ServerMachine>();

beforeAll(async () => {
  for (const caller of CALLERS) machines.set(caller, await createServerMachine(caller, FILES));
});
afterAll(() => {
  for (const machine of machines.values()) machine[Symbol.dispose]();
});

async function withTask(caller: Caller, name: string): Promise<{ machine: ServerMachine; changes: ApiChanges }> {
  const machine = machines.get(caller) as ServerMachine;
  await machine.runDemo(name, EDIT);
  const { json } = await machine.server.call<ApiChanges>('GET', `/api/tasks/${name}/changes`);
  return { machine, changes: json };
}

const file = (changes: ApiChanges, path: string): ApiFile => {
  const found = changes.files.find((one) => one.path === path);
  if (found === undefined) throw new Error(`no ${path}`);
  return found;
};

describe.each(CALLERS)('as %s', (caller) => {
  test('files have lanes, lines and hunks, and a merge takes exactly the selected ones', async () => {
    const { machine, changes } = await withTask(caller, 'work');
    const { server } = machine;
    expect(
      changes.files.map(({ n, path, kind, lane, added, removed, folded, conflict }) => [
        n,
        path,
        kind,
        lane,
        added,
        removed,
        folded,
        conflict,
      ]),
    ).toEqual([
      [0, 'package.json', 'new', 'host', 1, 0, null, false],
      [1, 'new.txt', 'new', 'inert', 1, 0, null, false],
      [2, 'old.txt', 'deleted', 'inert', 0, 1, 'deleted', false],
      [3, 'src/long.txt', 'modified', 'inert', 2, 2, null, false],
    ]);
    expect(changes.into).toEqual({ branch: 'main', commit: machine.git('rev-parse', 'main').trim() });
    const at = `/api/tasks/work/changes/${changes.id}/files`;
    const text = (await server.call<ApiFileText>('GET', `${at}/3`)).json;
    expect(text.hunks.map(({ n }) => n)).toEqual([0, 1]);
    expect(text.before).toBe(FILES['src/long.txt']);
    expect(text.patch).toContain('diff --git a/src/long.txt b/src/long.txt\nindex ');
    expect(text.patch).toContain('\n-line 2\n+SECOND\n');
    // A number consists of digits only; JavaScript accepts more.
    for (const n of ['4', '1e0', '0x1', '1000000']) expect((await server.call('GET', `${at}/${n}`)).status).toBe(404);

    const body = { changes: changes.id, files: [{ n: 2 }, { n: 3, hunks: [1] }] };
    const dry = await server.call<Merged>('POST', '/api/tasks/work/merge', { ...body, dryRun: true });
    expect(dry.json).toMatchObject({ branch: 'main', files: 2, conflicts: [], problem: null });
    expect(machine.git('log', '--format=%s').trim()).toBe('first');
    const merged = await server.call<Merged>('POST', '/api/tasks/work/merge', { ...body, message: 'Only some' });
    expect(merged.json).toMatchObject({ branch: 'main', files: 2, left: ['package.json', 'new.txt', 'src/long.txt'] });
    expect(machine.git('log', '-1', '--format=%s').trim()).toBe('Only some');
    expect(machine.git('diff', '--name-status', 'HEAD~1').trim()).toBe('D\told.txt\nM\tsrc/long.txt');
    expect(machine.read('src/long.txt')).toBe(FILES['src/long.txt'].replace('line 38', 'LAST'));
    expect(machine.git('status', '--porcelain')).toBe('');

    // The row says what stands, and the files that the branch has are marked.
    const standing = async (): Promise<unknown> => ({
      row: (await server.call<ApiTask>('GET', '/api/tasks/work')).json.merged,
      files: (await server.call<ApiChanges>('GET', '/api/tasks/work/changes')).json.files.map((file) => file.merged),
    });
    const commit = machine.git('rev-parse', 'main').trim();
    expect(await standing()).toEqual({
      row: { branch: 'main', commit, files: 2, of: 4 },
      files: [false, false, true, false],
    });
    expect((await machine.ags(['show', 'work'])).stdout).toContain(
      `merged   2 of 4 files into main as ${commit.slice(0, 7)}; to undo: ags undo`,
    );

    const undone = await server.call<{ text: string }>('POST', '/api/tasks/work/undo');
    expect(await standing()).toEqual({ row: null, files: [false, false, false, false] });
    expect(undone.json.text).toContain('was undone');
    expect(machine.read('src/long.txt')).toBe(FILES['src/long.txt']);
  });

  test('a decision about outdated changes is refused, whatever it requests', async () => {
    const { machine, changes } = await withTask(caller, 'stale');
    const { server } = machine;
    const all = changes.files.map(({ n }) => ({ n }));
    await server.call('POST', '/api/tasks/stale/send', { text: 'write: new.txt something worse' });
    await machine.event('stale', 'turn.ended', (event) => event['turn'] === 2);
    await machine.until('stale', ['ready']);
    for (const verb of ['merge', 'apply'])
      for (const dryRun of [true, false]) {
        const refused = await server.call<{ error: { code: string } }>('POST', `/api/tasks/stale/${verb}`, {
          changes: changes.id,
          files: all,
          dryRun,
        });
        expect([refused.status, refused.json.error.code]).toEqual([409, 'project.changed']);
      }
    expect(machine.git('log', '--format=%s').trim()).toBe('first');
    expect(machine.has('new.txt')).toBe(false);
    const next = (await server.call<ApiChanges>('GET', '/api/tasks/stale/changes')).json;
    expect(next.id).not.toBe(changes.id);
    // The viewed changes stay readable under their id.
    const old = await server.call<ApiFileText>('GET', `/api/tasks/stale/changes/${changes.id}/files/1`);
    expect(old.json.after).toBe('hello\n');
  });
});

test('hunks are applied, uncommitted, to files that were edited meanwhile; the rest can be merged later', async () => {
  const { machine, changes } = await withTask(ONE, 'hunks');
  const { server } = machine;
  machine.write('src/long.txt', FILES['src/long.txt'].replace('line 20', 'MINE'));
  const { n } = file(changes, 'src/long.txt');
  const post = (hunks: number[]): Promise<{ json: Applied; status: number }> =>
    server.call<Applied>('POST', '/api/tasks/hunks/apply', { changes: changes.id, files: [{ n, hunks }] });
  expect((await post([0])).json.files).toEqual(['src/long.txt']);
  expect(machine.read('src/long.txt')).toBe(
    FILES['src/long.txt'].replace('line 20', 'MINE').replace('line 2\n', 'SECOND\n'),
  );
  expect((await post([1])).json.files).toEqual(['src/long.txt']);
  expect(machine.read('src/long.txt')).toBe(
    FILES['src/long.txt'].replace('line 20', 'MINE').replace('line 2\n', 'SECOND\n').replace('line 38', 'LAST'),
  );
  machine.write('src/long.txt', FILES['src/long.txt'].replace('line 2\n', 'not yours\n'));
  const refused = await post([0]);
  expect(refused.status).toBe(409);
  expect(machine.read('src/long.txt')).toContain('not yours');
  machine.git('checkout', '-q', '.');
});

test('a conflict is reported before the merge, and the rest can go to a new branch', async () => {
  const { machine } = await withTask(ONE, 'clash');
  const { server } = machine;
  machine.write('src/long.txt', FILES['src/long.txt'].replace('line 38', 'my own'));
  machine.git('commit', '-qam', 'mine');
  const changes = (await server.call<ApiChanges>('GET', '/api/tasks/clash/changes')).json;
  expect(changes.files.filter(({ conflict }) => conflict).map(({ path }) => path)).toEqual(['src/long.txt']);
  const { n } = file(changes, 'src/long.txt');
  const wish = { changes: changes.id, files: [{ n }] };
  const dry = (await server.call<Merged>('POST', '/api/tasks/clash/merge', { ...wish, dryRun: true })).json;
  expect(dry.conflicts).toEqual(['src/long.txt']);
  expect((await server.call('POST', '/api/tasks/clash/merge', wish)).status).toBe(409);
  const made = await server.call<Merged>('POST', '/api/tasks/clash/merge', { ...wish, into: 'side', create: true });
  expect(made.json).toMatchObject({ branch: 'side', files: 1 });
  expect(machine.git('show', 'side:src/long.txt')).toContain('LAST');
  expect(machine.read('src/long.txt')).toContain('my own');
});
