// test/sandbox/connection-owner.test.ts: names the program inside that opened a connection, in text that is safe to print.
// needs: sandbox
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import type { SandboxNetwork } from '../../src/protocol/spec.ts';
import { findAsker } from '../../src/sandbox/watch/connection-owner.ts';
import { ALSO_AS_USER, runAgain } from '../conformance/again.ts';
import { openNative } from '../conformance/native-backend.ts';
import { createPlace, ended } from '../conformance/place.ts';

const LISTENER: SandboxNetwork = {
  kind: 'gateway',
  listeners: [{ name: 'proxy', protocol: 'tcp', address: '0.0.0.0', port: 443 }],
  reach: false,
};

/** Runs a shell script that connects once; returns the program that findAsker() names. */
async function asker(script: string): Promise<{ found: string | undefined; ms: number }> {
  using place = await createPlace((directory) => openNative(directory));
  let caller: (socket: Socket) => void;
  const called = new Promise<Socket>((resolve) => (caller = resolve));
  const sandbox = await place.start(['bash', '-c', script], {
    spec: place.spec([], { network: LISTENER }),
    onListener: (_name, listener) => listener.on('connection', (socket: Socket) => caller(socket)),
  });
  const socket = await called;
  const began = performance.now();
  const found = await findAsker(sandbox.initPid ?? 0, socket.remotePort ?? 0);
  const ms = performance.now() - began;
  socket.destroy();
  sandbox.kill();
  await ended(sandbox);
  return { found, ms };
}

const CONNECT = `use Socket; socket(S, PF_INET, SOCK_STREAM, 0); connect(S, pack_sockaddr_in(443, inet_aton("127.64.0.7"))) or die $!; sleep 20`;
const DUAL = `use Socket qw(:all); socket(S, PF_INET6, SOCK_STREAM, 0); connect(S, pack_sockaddr_in6(443, inet_pton(AF_INET6, "::ffff:127.64.0.7"))) or die $!; sleep 20`;

test.each([
  ['a program is named with its first argument', `echo '${CONNECT}' > build.pl; perl build.pl; :`, 'perl build.pl'],
  ['a path is reduced to its last part', `echo '${CONNECT}' > build.pl; perl /tmp/build.pl; :`, 'perl build.pl'],
  ['options are not shown', `perl -e '${CONNECT}'; :`, 'perl'],
  [
    'arguments that may hold a secret are not shown',
    `echo '${CONNECT}' > 'https:__user:token@host'; mkdir -p https: ; cp https:__* 'https:/user:token@host'; perl https://user:token@host; :`,
    'perl',
  ],
  ['a program that connects over IPv6 is found', `echo '${DUAL}' > six.pl; perl six.pl; :`, 'perl six.pl'],
  ['the shell itself is found', `exec 9<>/dev/tcp/127.0.0.1/443; sleep 20; :`, 'bash'],
  ['a process that left its parent is found', `(setsid perl -e '${CONNECT}' &) ; sleep 20; :`, 'perl'],
  [
    'control characters are escaped and long names cut',
    `name=$(printf 'a\\033]0;owned\\007\\342\\200\\256%0200d' 7); echo '${CONNECT}' > "$name"; perl "$name"; :`,
    `perl a\\x1b]0;owned\\x07`,
  ],
])('%s', async (_name, script, words) => {
  const { found } = await asker(`cd /tmp; ${script}`);
  expect(found?.slice(0, words.length)).toBe(words);
  expect((found ?? '').length).toBeLessThanOrEqual(80);
  // oxlint-disable-next-line no-control-regex
  expect(found).not.toMatch(/[\u0000-\u001f\u007f\u202e]/);
});

test('among many processes the program is found in bounded time', async () => {
  const { found, ms } = await asker(`for i in {1..150}; do sleep 20 & done; perl -e '${CONNECT}'; :`);
  expect(found).toBe('perl');
  expect(ms).toBeLessThan(2000);
});

test('an unknown connection and a sandbox that has ended have no program', async () => {
  expect(await findAsker(process.pid, 1)).toBeUndefined();
  expect(await findAsker(4_194_305, 443)).toBeUndefined();
  expect(await findAsker(-1, Number.NaN)).toBeUndefined();
});

if (ALSO_AS_USER)
  test('an ordinary user gets the same results', async () => {
    const { passed, failed, other } = await runAgain({ file: String(expect.getState().testPath), uid: 42_424 });
    expect({ failed, other, passed: passed.length }).toEqual({ failed: [], other: [], passed: 10 });
  }, 310_000);
