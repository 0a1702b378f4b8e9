// test/hooks/sandbox.test.ts: hooks with a real sandbox: the client inside asks the listener, and no action of an agent changes, reveals
// or skips a hook.
// needs: sandbox
import { existsSync, readFileSync } from 'node:fs';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { hostPath, sandboxPath, type Mount, type SandboxSpec } from '../../src/protocol/spec.ts';
import { layerAt } from '../../src/lib/files.ts';
import { withListeners, type RunHooks } from '../../src/agent-run/run-hooks.ts';
import { ALSO_AS_USER, runAgain } from '../conformance/again.ts';
import { openNative } from '../conformance/native-backend.ts';
import { createPlace, type Outcome, type Place } from '../conformance/place.ts';
import { COMMAND, createHookPlace, type HookPlace } from './fixture.ts';

function specOf(place: Place, hooks: RunHooks): SandboxSpec {
  const files = hooks.files.map(({ to, content }): Mount => ({
    kind: 'file',
    content,
    to: sandboxPath(to),
    why: 'asks the hooks',
  }));
  return place.spec(files, { network: withListeners({ kind: 'loopback' }, hooks.listeners) });
}

/** Runs a shell line inside, with $ASK as the agent's hook command. */
async function inside(hooks: RunHooks, line: string, onListener = hooks.onListener.bind(hooks)): Promise<Outcome> {
  using place = await createPlace((directory) => openNative(directory));
  const ask = hooks.listener?.command.join(' ') ?? '';
  return await place.run(['sh', '-c', `ASK="${ask}"\n${line}`], {
    spec: specOf(place, hooks),
    onListener: (name, handle) => onListener(name, handle as Server),
  });
}

const request = JSON.stringify(COMMAND);
const NO_HOOK = '#!/bin/sh\necho "not today" >&2\nexit 2\n';
const REASON = 'Refused by the hook ~/.config/ags/hooks/pre-bash: not today\n';

async function withHook(hook: string, use: (hooks: RunHooks, at: HookPlace) => Promise<void>): Promise<void> {
  await using at = createHookPlace();
  at.own('pre-bash', hook);
  await use(await at.open(), at);
}

test('approval and refusal reach the agent inside, in a sandbox without any other network', async () => {
  await withHook('#!/bin/sh\ngrep -q \'"npm test"\'\n', async (hooks) => {
    expect(hooks.listener).toEqual({
      command: ['/usr/bin/perl', '-T', '/run/ags/hook'],
      url: 'http://127.0.0.1:3130/hook',
    });
    const said = await inside(hooks, `echo '${request}' | $ASK PreToolUse; echo "status $?"`);
    expect(said).toEqual({ code: 0, stdout: 'status 0\n', stderr: '' });
  });
  await withHook(NO_HOOK, async (hooks) => {
    const said = await inside(hooks, `echo '${request}' | $ASK PreToolUse; echo "status $?"`);
    expect(said).toEqual({ code: 0, stdout: 'status 2\n', stderr: REASON });
  });
});

test('a sandbox cannot change the client, or see hooks and their copies', async () => {
  await withHook(NO_HOOK, async (hooks, at) => {
    const tries = [
      'echo "exit 0" > /run/ags/hook',
      'rm -f /run/ags/hook',
      'mv /run/ags/hook /tmp/h',
      'mkdir -p /run/ags/x',
      `ls ${at.task}`,
      `ls ${at.root}`,
      `cat ${at.context.home}/.config/ags/hooks/pre-bash`,
    ];
    const line = tries.map((one) => `(${one}) 2>/dev/null && echo "done: ${one}"`).join('\n');
    const said = await inside(hooks, `${line}\necho '${request}' | $ASK PreToolUse; echo "status $?"`);
    expect(said).toEqual({ code: 0, stdout: 'status 2\n', stderr: REASON });
    expect(at.events.map(({ verdict }) => verdict)).toEqual(['refused']);
  });
});

test("changing the sandbox's copy of the project's hook has no effect", async () => {
  await using at = createHookPlace();
  at.file('.ags/hooks/pre-bash', NO_HOOK);
  at.trust();
  const hooks = await at.open();
  using place = await createPlace((directory) => openNative(directory));
  const workspace: Mount = {
    kind: 'workspace',
    workspace: {
      kind: 'overlay',
      layers: [layerAt(at.project)],
      hidden: [],
      upper: hostPath(place.writable('upper')),
      work: hostPath(place.writable('work')),
    },
    to: sandboxPath(at.project),
    why: 'the project',
  };
  const spec = specOf(place, hooks);
  const line = `cd ${at.project} && printf '#!/bin/sh\\nexit 0\\n' > .ags/hooks/pre-bash && tail -n 1 .ags/hooks/pre-bash && echo '${request}' | /usr/bin/perl -T /run/ags/hook PreToolUse; echo "status $?"`;
  const said = await place.run(['sh', '-c', line], {
    spec: { ...spec, mounts: [...spec.mounts, workspace] },
    onListener: (name, handle) => hooks.onListener(name, handle as Server),
  });
  expect(said.stdout).toBe('exit 0\nstatus 2\n');
  expect(said.stderr).toBe('Refused by the hook .ags/hooks/pre-bash: not today\n');
  expect(readFileSync(join(at.project, '.ags/hooks/pre-bash'), 'utf8')).toBe(NO_HOOK);
});

test('a direct request to the listener only runs a hook again, and allows nothing', async () => {
  await withHook('#!/bin/sh\ngrep -q "echo harmless" || { echo "not today" >&2; exit 2; }\n', async (hooks, at) => {
    const harmless = request.replaceAll('npm test', 'echo harmless');
    const talk = `perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new("127.0.0.1:3130") or die; my $b = shift; print $s "POST /hook/x HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: ".length($b)."\\r\\n\\r\\n$b"; print <$s>' '${harmless}' | tail -n 1`;
    const said = await inside(hooks, `${talk}\necho '${request}' | $ASK PreToolUse; echo "status $?"`);
    expect(said.stdout).toBe('{"allow":true}\nstatus 2\n');
    expect(at.events.map(({ verdict }) => verdict)).toEqual(['allowed', 'refused']);
  });
});

test('no program inside can replace the listener', async () => {
  await withHook(NO_HOOK, async (hooks) => {
    const steal = `perl -MSocket -e 'socket(my $s, PF_INET, SOCK_STREAM, 0); setsockopt($s, SOL_SOCKET, $_, 1) for SO_REUSEADDR, 15; print bind($s, pack_sockaddr_in(3130, inet_aton("127.0.0.1"))) && listen($s, 5) ? "taken" : "not taken", "\\n"'`;
    const said = await inside(hooks, `${steal}\necho '${request}' | $ASK PreToolUse; echo "status $?"`);
    expect(said).toMatchObject({ stdout: 'not taken\nstatus 2\n', stderr: REASON });
  });
});

test('the client refuses when the listener outside does not answer', async () => {
  await withHook('#!/bin/sh\nexit 0\n', async (hooks) => {
    const ask = `echo '${request}' | $ASK PreToolUse; echo "status $?"`;
    const gone = await inside(hooks, ask, (_name, handle) => void handle.close());
    expect(gone).toMatchObject({ stdout: 'status 2\n', stderr: expect.stringContaining('could not be asked') });
    const rude = await inside(
      hooks,
      ask,
      (_name, handle) => void handle.on('connection', (socket) => socket.destroy()),
    );
    expect(rude).toMatchObject({ stdout: 'status 2\n', stderr: expect.stringContaining('could not be asked') });
    await hooks.close();
    expect(await inside(hooks, ask)).toMatchObject({ stdout: 'status 2\n' });
  });
});

test('a run leaves nothing behind', async () => {
  await withHook('#!/bin/sh\nexit 0\n', async (hooks, at) => {
    await inside(hooks, `echo '${request}' | $ASK PreToolUse`);
    await hooks.close();
    expect(existsSync(join(at.task, 'hooks'))).toBe(false);
  });
});

if (ALSO_AS_USER)
  test('the same holds for an ordinary user', async () => {
    const { passed, failed, other } = await runAgain({ file: String(expect.getState().testPath), uid: 42_424 });
    expect({ failed, other, enough: passed.length >= 7 }).toEqual({ failed: [], other: [], enough: true });
  }, 310_000);
