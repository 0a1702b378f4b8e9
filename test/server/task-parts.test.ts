// test/server/task-parts.test.ts: parts of a task over the API: risky files, queued messages, its raw log, and changes since viewed.
// needs: sandbox
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ApiTaskDetail } from '../../src/protocol/api/api.ts';
import type { ApiChanges, ApiFileText } from '../../src/protocol/api/review.ts';
import { USUAL } from '../harness.ts';
import { createServerMachine, type ServerMachine } from './place.ts';

describe.each(USUAL)('as %s', (caller) => {
  let machine: ServerMachine;
  beforeAll(async () => {
    machine = await createServerMachine(caller);
  });
  afterAll(() => machine[Symbol.dispose]());
  const detail = async (id: string): Promise<ApiTaskDetail> =>
    (await machine.server.call<ApiTaskDetail>('GET', `/api/tasks/${id}`)).json;

  test('the number of files that can run code is known when the run ends, and not before', async () => {
    await machine.ags([
      'start',
      'risky',
      'write: Makefile all: // write: a.md x // wait: 600',
      '--agent',
      'demo',
      '--detach',
    ]);
    await machine.event('risky', 'tool.finished', ({ id }) => id === 'demo-2');
    expect(await detail('risky')).toMatchObject({ live: true, risky: null });
    await machine.ags(['stop', 'risky']);
    await machine.until('risky', ['stopped']);
    expect(await detail('risky')).toMatchObject({ live: false, files: 2, risky: 1 });
    expect((await machine.ags(['list'])).stdout).toContain('2 files, 1 risky');
    await machine.runDemo('harmless', 'write: b.md x');
    expect(await detail('harmless')).toMatchObject({ risky: 0 });
  });

  test('a queued message is listed and withdrawn once; a delivered message is not', async () => {
    await machine.ags(['start', 'waits', 'wait: 600', '--agent', 'demo', '--detach']);
    await machine.event('waits', 'run.started');
    await machine.ags(['send', 'waits', 'first']);
    await machine.ags(['send', 'waits', 'second']);
    const { waiting } = await detail('waits');
    expect(waiting.map(({ text }) => text)).toEqual(['first', 'second']);
    const path = `/api/tasks/waits/messages/${waiting[0]?.id ?? ''}`;
    expect((await machine.server.call('DELETE', path)).json).toEqual({ text: 'first' });
    expect((await machine.server.call('DELETE', path)).json).toEqual({ text: null });
    expect((await machine.server.call('DELETE', '/api/tasks/waits/messages/..%2ftask')).status).toBe(404);
    expect((await machine.server.call('DELETE', '/api/tasks/waits/messages/nothing')).json).toEqual({ text: null });
    expect((await detail('waits')).waiting.map(({ text }) => text)).toEqual(['second']);
    await machine.ags(['rm', 'waits', '--force', '--yes']);
  });

  test('only a signed-in client can read the raw log, which is a file to save', async () => {
    await machine.runDemo('logged', 'say: <script>alert(1)</script>');
    const { server } = machine;
    expect((await server.raw('GET', '/api/tasks/logged/log', {})).status).toBe(401);
    const { status, headers, text } = await server.call('GET', '/api/tasks/logged/log');
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-disposition': 'attachment; filename="logged.log"',
      'x-content-type-options': 'nosniff',
    });
    expect(text).toBe(readFileSync(join(machine.stateDir, 'tasks/logged/agent.log'), 'utf8'));
    expect((await server.call('GET', '/api/tasks/missing/log')).status).toBe(404);
  });

  test('changes since a viewed version are the difference to it; another id is refused', async () => {
    const { server } = machine;
    await machine.runDemo('again', 'write: notes.md first');
    const before = (await server.call<ApiChanges>('GET', '/api/tasks/again/changes')).json;
    const viewed = before.files[0]?.oid.after ?? '';
    await machine.ags(['send', 'again', 'append: notes.md   second']);
    await machine.until('again', ['ready']);
    const now = (await server.call<ApiChanges>('GET', '/api/tasks/again/changes')).json;
    const at = `/api/tasks/again/changes/${now.id}/files/0`;
    const file = async (query: string): Promise<ApiFileText> =>
      (await server.call<ApiFileText>('GET', at + query)).json;
    expect((await file('')).patch).toContain('+first\n');
    expect((await file(`?since=${viewed}`)).patch).toMatch(/ first\n\+.*second\n/);
    for (const id of ['main', 'HEAD:README.md', '0'.repeat(40), machine.git('rev-parse', 'HEAD').trim(), '--help'])
      expect((await server.call('GET', `${at}?since=${encodeURIComponent(id)}`)).status).toBe(404);
  });
});
