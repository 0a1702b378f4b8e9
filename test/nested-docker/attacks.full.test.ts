// test/nested-docker/attacks.full.test.ts: attacks of an agent with nested Docker on this machine, its engine, its files, its network, other
// tasks, and the processes around the nested daemon. One sandbox makes all attempts; each has its own test.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { giveTo, type Machine } from '../harness.ts';
import { startImageHub, type ImageHub } from './image-hub.ts';
import { CAN_NEST, createPlace, ENGINE_CALLERS, outcomes, runAgs, TRY } from './place.ts';

const MIGHTY = '--security-opt seccomp=unconfined --cap-add ALL';

function script(machine: Machine, port: number, hubPort: string): string {
  const address = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .find(({ internal, family }) => !internal && family === 'IPv4')?.address;
  const inside = (flags: string, attempts: string): string =>
    `docker run --rm --interactive ${flags} app:1 sh -s <<'ATTEMPTS'\n${TRY}${attempts}ATTEMPTS\n`;
  return `${TRY}
docker pull --quiet app:1 > /dev/null 2>&1
try pulled docker images --quiet app:1
try socket docker --host unix:///var/run/docker.sock version
docker tag app:1 localhost:5000/library/evil:1
try push docker push --quiet localhost:5000/library/evil:1
try processes sh -c 'docker run --rm ${MIGHTY} --pid host app:1 kill -9 1 2> /tmp/said; code=$?; grep -v "error waiting" /tmp/said; exit $code'
${inside(
  '--volume /:/host --volume /dev:/hostdev',
  `try files cat /host${join(machine.root, 'canary')}
try write touch /host/usr/planted
try disks sh -c 'find /hostdev -type b | head -n 1'
try meeting ls -A /host/ags
try bridge nc -w 3 172.17.0.1 ${port}
try metadata nc -w 3 169.254.169.254 80
`,
)}${inside(
    `${MIGHTY} --volume /:/host --volume /proc:/hostproc`,
    `try remount mount -o remount,bind,rw /host/usr
try planted touch /host/usr/planted
try kernel sh -c 'echo x > /hostproc/sys/kernel/core_pattern'
try messages dd if=/hostproc/kmsg of=/dev/null bs=1 count=1
try hypervisor chroot /host /usr/bin/perl -e 'print socket(my $any, 40, 1, 0) ? "open" : $!'
try strangers sh -c 'grep -l "^Uid:.65534" /hostproc/[0-9]*/status | grep -c .'
try helper sh -c 'for s in $(grep -l "^Uid:.65534" /hostproc/[0-9]*/status); do ls \${s%status}fd; done 2> /dev/null | grep -c .'
try password sh -c 'cat /hostproc/[0-9]*/environ 2> /dev/null | grep -c a-password-of-the-user'
`,
  )}${inside(
    '--network host',
    `try loopback nc -w 3 127.0.0.1 ${port}
try machine nc -w 3 ${address ?? '127.0.0.1'} ${port}
try registry nc -w 3 127.0.0.1 ${hubPort}
try interfaces sh -c "ip -o link | grep -v -c -e ' lo:' -e ' docker0:' -e ' ags0@'"
try upload sh -c 'printf "POST /v2/library/app/blobs/uploads/ HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n" | nc -w 3 127.0.0.1 5000 | head -n 1'
try through sh -c 'printf "CONNECT 127.0.0.1:${port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n" | nc -w 3 127.0.0.1 5000 | head -n 1'
`,
  )}try alive docker run --rm app:1 echo still here
`;
}

describe.runIf(CAN_NEST).each(ENGINE_CALLERS)('as %s, with nested Docker, an attacker cannot', (caller) => {
  let hub: ImageHub;
  let machine: Machine;
  let server: Server;
  let said: Record<string, string>;
  const visitors: string[] = [];

  beforeAll(async () => {
    hub = await startImageHub();
    machine = createPlace(caller, hub);
    writeFileSync(join(machine.root, 'canary'), 'canary of this machine\n', { mode: 0o644 });
    // Docker's client sets these variables in every container by default.
    const proxies = { default: { httpProxy: 'http://me:a-password-of-the-user@proxy.corp:3128' } };
    mkdirSync(join(machine.home, '.docker'));
    writeFileSync(join(machine.home, '.docker/config.json'), JSON.stringify({ proxies }));
    giveTo(join(machine.home, '.docker'), machine.uid);
    server = createServer((request, response) => {
      visitors.push(request.url ?? '');
      response.end('a service of this machine\n');
    });
    await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
    const { port } = server.address() as AddressInfo;
    const { stdout } = await runAgs(machine, [
      'exec',
      '--',
      'sh',
      '-c',
      script(machine, port, new URL(hub.origin).port),
    ]);
    said = outcomes(stdout);
  }, 180_000);
  afterAll(async () => {
    server?.close();
    machine?.[Symbol.dispose]();
    await hub?.[Symbol.asyncDispose]();
  });

  test('fail for another reason: the image is pulled and runs to the end', () => {
    expect(said['pulled']).toMatch(/^0 [0-9a-f]{12}$/);
    expect(said['strangers']).toBe('0 2');
    expect(said['alive']).toBe('0 still here');
  });

  test.each([
    ['find the socket of the engine of this machine', 'socket', /^1 .*(Cannot connect|no such file)/i],
    ['read files of this machine', 'files', /^1 cat: can't open .*No such file/],
    ['write to the programs of this machine', 'write', /^1 touch: .*Read-only file system/],
    ['remount the programs of this machine writable', 'remount', /^1 .*(ermission denied|not permitted)/],
    ['write to them after the remount', 'planted', /^1 .*Read-only file system/],
    ['find a disk', 'disks', /^0 $/],
    ['change a setting of the kernel', 'kernel', /^[12] .*(ermission denied|not permitted|Read-only)/],
    ['read the messages of the kernel', 'messages', /^1 .*(ermission denied|not permitted)/],
    ['reach a service on the loopback of this machine', 'loopback', /^1 .*refused/],
    ['reach a service at its address', 'machine', /^1 .*(unreachable|refused)/],
    ['reach a service over the bridge', 'bridge', /^1 .*(refused|unreachable|timed out)/],
    ['reach the metadata service of a cloud', 'metadata', /^1 .*(refused|unreachable|timed out)/],
    ['reach the registry itself', 'registry', /^1 .*refused/],
    ['have an interface besides its own', 'interfaces', /^[01] 0$/],
    ['upload to the image cache', 'upload', /^0 HTTP\/1\.1 405 /],
    ['push an image to the cache', 'push', /^1 /],
    ['use the cache as a proxy', 'through', /^0 HTTP\/1\.1 403 /],
    ['join the processes around the nested daemon', 'processes', /^125 .*not permitted/],
    ['read the descriptors of the network helper', 'helper', /^1 0$/],
    [
      'talk to the hypervisor, which network namespaces do not isolate',
      'hypervisor',
      /^0 Address family not supported/,
    ],
    ['find the directory of the handshake with ags', 'meeting', /^0 $/],
    ["find a password from the settings of the user's Docker client", 'password', /^1 0$/],
  ])('%s', (_what, name, outcome) => {
    expect(said[name]).toMatch(outcome);
  });

  test('reach any service of this machine', () => {
    expect(visitors).toEqual([]);
  });
});

if (!CAN_NEST) test.skip('Docker does not answer here, or docker-registry is missing', () => undefined);
