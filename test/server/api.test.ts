// test/server/api.test.ts: the whole task lifecycle over HTTP, as scripts and the page use it; the command line shows the same.
// needs: sandbox
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient, type Client } from '../../src/client/client.ts';
import * as api from '../../src/protocol/api/api.ts';
import * as review from '../../src/protocol/api/review.ts';
import { ONE } from '../harness.ts';
import { createServerMachine, enter, listen, type ServerMachine } from './place.ts';

let machine: ServerMachine;
let ags: Client;

beforeAll(async () => {
  machine = await createServerMachine(ONE);
  ags = createClient({ url: `http://127.0.0.1:${machine.server.port}`, key: machine.server.key });
});
afterAll(() => machine[Symbol.dispose]());

test('a script starts goals in parallel, watches, messages, stops, restarts, forks and removes tasks', async () => {
  const { tasks } = await ags.startTasks({
    project: machine.projectId,
    goals: [{ text: 'say: hello // write: a.txt one', name: 'first' }],
    agents: ['demo'],
    attempts: 2,
  });
  expect(tasks).toEqual(['first-1', 'first-2']);
  for (const task of tasks) await machine.until(task, ['ready']);
  const rows = (await ags.tasks({ project: machine.projectId })).tasks;
  expect(
    rows.map(({ id, state, group, attemptOf, files, agentTitle }) => [id, state, group, attemptOf, files, agentTitle]),
  ).toEqual([
    ['first-2', 'ready', 'look', 'first-1', 1, 'Demo agent'],
    ['first-1', 'ready', 'look', 'first-1', 1, 'Demo agent'],
  ]);
  const { stdout } = await machine.ags(['list', '-q']);
  expect(stdout).toBe('first-2\nfirst-1\n');

  const detail = await ags.task('first-1');
  expect(detail).toMatchObject({ goal: 'say: hello // write: a.txt one', baseRef: 'main', branch: 'ags/first-1' });
  expect(detail.can).toEqual(['send', 'continue', 'restart', 'fork', 'review', 'merge', 'remove']);
  const all = await ags.events('first-1');
  expect(all.events.map(({ seq }) => seq)).toEqual(Array.from({ length: all.last }, (_, i) => i + 1));
  expect((await ags.events('first-1', { after: 2, limit: 2 })).events).toEqual(all.events.slice(2, 4));
  expect((await ags.events('first-1', { before: 5, limit: 2 })).events).toEqual(all.events.slice(2, 4));
  expect(all.events.every((event) => !('prev' in event))).toBe(true);
  expect((await ags.tasks({ q: 'HELLO first-1' })).tasks.map(({ id }) => id)).toEqual(['first-1']);

  expect(await ags.send('first-1', 'write: b.txt two // say: again // wait: 600')).toEqual({ when: 'begun' });
  await machine.event('first-1', 'agent.said', (event) => event['text'] === 'again');
  expect(await ags.task('first-1')).toMatchObject({
    state: 'running',
    live: true,
    touched: [{ path: 'a.txt' }, { path: 'b.txt' }],
  });
  await expect(ags.restart('first-1')).rejects.toMatchObject({ status: 409, code: 'task.busy' });
  await expect(ags.removeTask('first-1')).rejects.toMatchObject({ status: 409 });
  expect(await ags.stop('first-1')).toEqual({ stopping: true });
  await machine.until('first-1', ['stopped']);

  const forked = await ags.fork('first-1', { text: 'append: b.txt three', name: 'more' });
  expect(forked).toEqual({ tasks: ['more'] });
  await machine.until('more', ['ready']);
  expect(machine.git('show', 'ags/more:b.txt')).toBe('two\nthree\n');
  // The changes of a fork include those of the original task.
  const { id: shown, files } = await ags.changes('more');
  expect(files.map(({ path }) => path)).toEqual(['a.txt', 'b.txt']);
  await ags.merge('more', { changes: shown, files: files.map(({ n }) => ({ n })) });
  expect(machine.read('b.txt')).toBe('two\nthree\n');
  expect((await ags.task('more')).can).toContain('undo');
  await ags.undo('more');
  expect(await ags.restart('first-2')).toEqual({ tasks: ['first-2'] });
  await machine.until('first-2', ['ready']);
  expect(await ags.task('first-2')).toMatchObject({ run: 2 });
  for (const task of ['first-1', 'first-2', 'more']) await ags.removeTask(task);
  expect(machine.tasks()).toEqual([]);
  expect(machine.git('for-each-ref', 'refs/heads/ags')).toBe('');
  expect((await ags.tasks()).tasks).toEqual([]);
});

test('killing a server stops no run; the next server shows the run and accepts the session, and two servers can run at once', async () => {
  const cookie = await enter(machine.server);
  const dying = await machine.serve();
  await dying.call('POST', '/api/tasks', {
    project: machine.projectId,
    goals: [{ text: 'say: here // run: while ! test -e go; do sleep 0.05; done // write: done.txt x', name: 'long' }],
    agents: ['demo'],
  });
  await machine.event('long', 'agent.said');
  await dying.stop('SIGKILL');
  const next = await machine.serve();
  const headers = { cookie, 'sec-fetch-site': 'same-origin' };
  const seen = await next.raw('GET', '/api/tasks/long', headers);
  expect(seen.json).toMatchObject({ state: 'running', live: true, doing: expect.stringContaining('Running while') });
  expect((await machine.server.raw('GET', '/api/tasks/long', headers)).json).toMatchObject({ state: 'running' });
  const shell = await listen(next, undefined, '/api/tasks/long/terminal');
  shell.socket.send(Buffer.from('touch go; echo "was $((40+2))"\n'));
  await machine.until('long', ['ready']);
  expect(machine.branch('long')).toContain('done.txt');
  await ags.removeTask('long');
});

test('a terminal is a shell in the sandbox that survives its tab', async () => {
  await ags.startTasks({
    project: machine.projectId,
    goals: [{ text: 'say: here // wait: 600', name: 'shell' }],
    agents: ['demo'],
  });
  await machine.event('shell', 'agent.said');
  expect((await ags.task('shell')).can).toContain('terminal');
  const first = await listen(machine.server, undefined, '/api/tasks/shell/terminal');
  first.socket.send(JSON.stringify({ resize: { cols: 101, rows: 31 } }));
  first.socket.send(Buffer.from('x=$((40 + 2)); stty size\n'));
  await first.sees('31 101');
  first.socket.terminate();
  const second = await listen(machine.server, undefined, '/api/tasks/shell/terminal');
  second.socket.send(Buffer.from('echo "still $x"\n'));
  await second.sees('still 42');
  const third = await listen(machine.server, undefined, '/api/tasks/shell/terminal');
  await third.sees('still 42');
  second.socket.send(Buffer.from('exit 7\n'));
  expect(await second.closed).toBe('it ended with 7');
  await ags.removeTask('shell', { force: true });
  await expect(ags.task('shell')).rejects.toMatchObject({ status: 404, code: 'task.not-found' });
});

test('a new network rule reaches a waiting run, and the requests are listed', async () => {
  await ags.startTasks({
    project: machine.projectId,
    goals: [{ text: 'fetch: https://blocked.invalid/ // say: tried // wait: 600', name: 'net' }],
    agents: ['demo'],
    network: 'record',
  });
  await expect
    .poll(() => ags.task('net'), { timeout: 30_000 })
    .toMatchObject({
      state: 'needs-you',
      group: 'needs-you',
      asks: [{ host: 'blocked.invalid', port: 443, untilMs: expect.any(Number) }],
    });
  expect((await ags.network({ task: 'net' })).attempts).toMatchObject([{ host: 'blocked.invalid', verdict: 'asked' }]);
  await ags.changeRule({ task: 'net' }, { action: 'deny', rule: 'blocked.invalid', scope: 'run' });
  await machine.event('net', 'agent.said');
  const row = (await ags.tasks()).tasks.find(({ id }) => id === 'net');
  expect(row?.blockedHosts).toEqual(['blocked.invalid:443']);
  await expect
    .poll(async () => (await ags.network({ task: 'net' })).attempts.map(({ host, verdict }) => [host, verdict]))
    .toEqual([['blocked.invalid', 'denied']]);
  expect((await ags.changeRule({ task: 'net' }, { action: 'allow', rule: 'ok.invalid', scope: 'run' })).text).toContain(
    'allowed in net',
  );
  expect((await ags.network({ task: 'net' })).rules).toContainEqual({
    action: 'allow',
    text: 'ok.invalid',
    origin: 'ags allow',
  });
  await ags.changeRule({ project: machine.projectId }, { action: 'deny', rule: 'no.invalid', scope: 'project' });
  expect(readFileSync(join(machine.project, 'ags.yaml'), 'utf8')).toContain('no.invalid');
  await expect(
    ags.changeRule({ task: 'net' }, { action: 'allow', rule: 'not a host', scope: 'run' }),
  ).rejects.toMatchObject({ status: 400 });
  await ags.removeTask('net', { force: true });
});

test('a cloned repository reports progress and becomes a project; a failed clone reports why', async () => {
  const listener = await listen(machine.server);
  listener.subscribe('projects', null);
  const cloning = await ags.addProject({ url: `file://${machine.project}` });
  expect(cloning).toMatchObject({ name: 'project', state: 'cloning' });
  await listener.until(({ type, data }) => type === 'project' && data.id === cloning.id && data.state === 'ready');
  const { projects } = await ags.projects();
  const cloned = projects.find(({ id }) => id === cloning.id);
  expect(cloned).toMatchObject({ state: 'ready', branch: 'main', url: `file://${machine.project}` });
  expect(existsSync(join(cloned?.path ?? '', 'README.md'))).toBe(true);
  expect(await ags.branches(cloning.id)).toEqual({ current: 'main', branches: ['main'] });
  await ags.removeProject(cloning.id);
  expect((await ags.projects()).projects.some(({ id }) => id === cloning.id)).toBe(false);

  const wrong = await ags.addProject({ url: 'file:///nowhere/at/all.git' });
  const failed = await listener.until(
    ({ type, data }) => type === 'project' && data.id === wrong.id && data.state === 'failed',
  );
  expect(failed.data).toMatchObject({ progress: expect.stringContaining('does not') });
  await ags.removeProject(wrong.id);
  listener.socket.terminate();
});

test('a task can start in a cloned project', async () => {
  const { id } = await ags.addProject({ url: `file://${machine.project}` });
  const listener = await listen(machine.server);
  listener.subscribe('projects', 0);
  await listener.until(({ type, data }) => type === 'project' && data.id === id && data.state === 'ready');
  await ags.startTasks({ project: id, goals: [{ text: 'write: x.txt y', name: 'cloned' }], agents: ['demo'] });
  expect(await machine.until('cloned', ['ready', 'failed'])).toMatchObject({ state: 'ready' });
  await ags.removeTask('cloned');
  listener.socket.terminate();
});

test('every response matches the documented schema', async () => {
  await machine.runDemo('doc', 'write: a.txt x');
  const { id } = await ags.changes('doc');
  const strict: [string, { parse(value: unknown): unknown }][] = [
    ['/api/about', api.ApiAbout],
    ['/api/projects', api.ApiProjects],
    [`/api/projects/${machine.projectId}/branches`, api.ApiBranches],
    ['/api/tasks', api.ApiTasks],
    ['/api/tasks/doc', api.ApiTaskDetail],
    ['/api/tasks/doc/events', api.ApiEvents],
    ['/api/tasks/doc/changes', review.ApiChanges],
    [`/api/tasks/doc/changes/${id}/files/0`, review.ApiFileText],
    ['/api/network', api.ApiNetwork],
    ['/api/storage', api.ApiStorage],
  ];
  for (const [path, schema] of strict) {
    const { json } = await machine.server.call('GET', path);
    expect(schema.parse(json), path).toEqual(json);
  }
  const { json } = await machine.server.call<{ paths: object }>('GET', '/api/openapi.json');
  expect(json).toEqual(JSON.parse(readFileSync(new URL('../../docs/reference/openapi.json', import.meta.url), 'utf8')));
  await expect(ags.send('doc', '')).rejects.toMatchObject({ status: 400, code: 'request.invalid' });
  await expect(ags.task('do')).rejects.toMatchObject({ status: 404, code: 'task.not-found' });
  await expect(
    ags.startTasks({ project: machine.projectId, goals: [{ text: 'x' }], agents: ['nobody'] }),
  ).rejects.toMatchObject({ status: 400 });
  await ags.removeTask('doc');
});

test('clean-up lists and removes unneeded data and keeps unreviewed changes', async () => {
  await machine.runDemo('keep', 'write: a.txt x');
  await machine.runDemo('nothing', 'say: I changed nothing');
  const storage = await ags.storage();
  expect(
    storage.items.filter(({ what }) => ['keep', 'nothing'].includes(what)).map(({ what, safe }) => [what, safe]),
  ).toEqual([
    ['nothing', true],
    ['keep', false],
  ]);
  expect((await ags.clean()).removed).toBeGreaterThan(0);
  expect(machine.tasks()).toEqual(['keep']);
  expect((await ags.tasks()).tasks.map(({ id }) => id)).toEqual(['keep']);
});

test('"ags web" finds the running server and gets a working link', async () => {
  const found = await machine.ags(['web', '--print', '--port', String(machine.server.port)]);
  expect(found.stdout).toMatch(/^http:\/\/ags-[0-9a-f]{20}\.localhost:\d+\/enter\?token=[\w-]+\n$/);
  const { pathname, search, host } = new URL(found.stdout.trim());
  expect((await machine.server.raw('GET', pathname + search, { host })).status).toBe(303);
});
