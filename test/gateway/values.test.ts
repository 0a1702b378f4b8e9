// test/gateway/values.test.ts: secret values read from variables, files, commands and the keychain.
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readValue } from '../../src/gateway/values.ts';
import { AgsError } from '../../src/protocol/errors.ts';
import type { ValueSource } from '../../src/protocol/network.ts';

const home = mkdtempSync(join(tmpdir(), 'ags-values-'));
afterAll(() => rmSync(home, { recursive: true }));
const bin = join(home, 'bin');
mkdirSync(bin);
const context = { home, env: { PATH: '/usr/bin:/bin', TOKEN: 'tok-1', EMPTY: '', LINES: 'a\r\nX-Evil: 1' } };

async function problem(source: ValueSource, more: Partial<Parameters<typeof readValue>[1]> = {}): Promise<string> {
  try {
    return `value ${await readValue(source, { ...context, ...more })}`;
  } catch (error) {
    if (!(error instanceof AgsError) || error.code !== 'config.invalid' || error.hint === undefined) throw error;
    return error.message;
  }
}

function file(name: string, content: string | Buffer, mode = 0o600): string {
  writeFileSync(join(home, name), content);
  chmodSync(join(home, name), mode);
  return `~/${name}`;
}

test('a value comes from a variable, a file or a command, without its final line break', async () => {
  const path = file('token', 'tok-2\n', 0o644);
  symlinkSync(join(home, 'token'), join(home, 'link'));
  writeFileSync(join(bin, 'mine'), '#!/bin/sh\necho tok-4\n', { mode: 0o700 });
  expect([
    await readValue({ env: 'TOKEN' }, context),
    await readValue({ file: path }, context),
    await readValue({ file: join(home, 'link') }, context),
    await readValue({ file: file('crlf', 'tok-2 \r\n') }, context),
    await readValue({ command: ['printf', '%s $HOME\n', 'tok-3'] }, context),
    await readValue({ command: ['sh', '-c', 'echo "$TOKEN"; echo warning >&2'] }, context),
    await readValue({ command: ['~/bin/mine'] }, context),
  ]).toEqual(['tok-1', 'tok-2', 'tok-2', 'tok-2 ', 'tok-3 $HOME', 'tok-1', 'tok-4']);
});

test('a missing, empty or unusable value is reported without being shown', async () => {
  execFileSync('mkfifo', [join(home, 'pipe')]);
  expect([
    await problem({ env: 'NOT_SET' }),
    await problem({ env: 'EMPTY' }),
    await problem({ env: 'LINES' }),
    await problem({ file: '~/missing' }),
    await problem({ file: 'relative' }),
    await problem({ file: home }),
    await problem({ file: '~/pipe' }),
    await problem({ file: file('empty', '\n') }),
    await problem({ file: file('two', 'one\ntwo\n') }),
    await problem({ file: file('nul', 'a\0b') }),
    await problem({ file: file('bytes', Buffer.from([0x61, 0xff, 0xfe])) }),
    await problem({ file: file('large', 'x'.repeat(65_537)) }),
  ]).toEqual([
    'The variable NOT_SET is not set.',
    'The variable EMPTY is empty.',
    'The variable LINES holds a line break or another control character.',
    'The file ~/missing cannot be read (ENOENT).',
    'The file relative has no full path.',
    `The file ${home} is not a regular file.`,
    'The file ~/pipe is not a regular file.',
    'The file ~/empty is empty.',
    'The file ~/two holds a line break or another control character.',
    'The file ~/nul holds a line break or another control character.',
    'The file ~/bytes is not text.',
    'The file ~/large is too large.',
  ]);
});

test('a file that others can write is refused', async () => {
  expect([
    await problem({ file: file('group', 'tok', 0o660) }),
    await problem({ file: file('all', 'tok', 0o606) }),
    await problem({ file: file('readable', 'tok', 0o644) }),
  ]).toEqual(['The file ~/group can be changed by others.', 'The file ~/all can be changed by others.', 'value tok']);
});

test.runIf(process.getuid?.() === 0)('a file of another user is refused', async () => {
  const path = file('theirs', 'tok');
  chownSync(join(home, 'theirs'), 12_345, 12_345);
  expect(await problem({ file: path })).toBe('The file ~/theirs can be changed by others.');
});

test('a failed command is reported with its errors, never with its output', async () => {
  expect([
    await problem({ command: ['sh', '-c', 'echo s3cret; echo "not signed in\u001b[2J" >&2; exit 3'] }),
    await problem({ command: ['sh', '-c', 'echo s3cret; kill -TERM $$'] }),
    await problem({ command: ['no-such-program', 's3cret'] }),
    await problem({ command: ['sh', '-c', 'printf s3cret; head -c 100000 /dev/zero'] }),
    await problem({ command: ['true'] }),
  ]).toEqual([
    'The command sh ended with status 3. It said: not signed in\\x1b[2J',
    'The command sh was ended by SIGTERM.',
    'The command no-such-program does not exist.',
    'The command sh printed too much.',
    'The output of true is empty.',
  ]);
});

test('a command is ended at its timeout, even if a child of it keeps running', async () => {
  const begin = performance.now();
  expect(await problem({ command: ['sh', '-c', 'sleep 5; echo late'] }, { commandMs: 300 })).toBe(
    'The command sh did not end within 0.3 s.',
  );
  expect(performance.now() - begin).toBeLessThan(3000);
});

test('the keychain is queried by service and account, and a missing one is reported', async () => {
  const none = { env: { PATH: join(home, 'nothing') } };
  const missing = await problem({ keychain: 'github.com/me' }, none);
  writeFileSync(
    join(bin, 'secret-tool'),
    '#!/bin/sh\n[ "$*" = "lookup service git.test/x account me" ] && exec printf tok-5\n[ "$5" = broken ] && echo "no bus" >&2\nexit 1\n',
    { mode: 0o700 },
  );
  const there = { env: { PATH: `${bin}:/usr/bin:/bin` } };
  expect([
    missing,
    await problem({ keychain: 'git.test/x/me' }, there),
    await problem({ keychain: 'git.test/you' }, there),
    await problem({ keychain: 'git.test/broken' }, there),
  ]).toEqual([
    'The keychain entry github.com/me cannot be read: the program secret-tool is not installed.',
    'value tok-5',
    'The keychain entry git.test/you does not exist.',
    'The keychain entry git.test/broken cannot be read: no bus.',
  ]);
});
