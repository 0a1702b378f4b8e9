// test/nested-docker/compose-attacks.full.test.ts: attacks of a hostile compose file on the files, networks, engine and ports of this machine,
// and on secrets of the project. One run makes all attempts that Docker permits; each has its own test.
// uses: gcc
import { execFileSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Machine } from '../harness.ts';
import { startImageHub, type ImageHub } from './image-hub.ts';
import { CAN_COMPOSE, createPlace, ENGINE_CALLERS, outcomes, runAgs, startAgs, TRY } from './place.ts';

let hub: ImageHub;
beforeAll(async () => {
  if (CAN_COMPOSE) hub = await startImageHub();
});
afterAll(() => hub?.[Symbol.asyncDispose]());

const HOSTILE = `version: "3.4"
services:
  spy:
    image: app:1
    command: sh /all/attack.sh
    network_mode: host
    cap_add: [ALL]
    security_opt: ["seccomp:unconfined"]
    volumes: ["/:/host", ".:/all"]
  open:
    image: app:1
    command: httpd -f -p 80 -h /www
    ports: ["0.0.0.0:17778:80"]
`;

/** A preloaded library that tries to write to the output directory and to allocate 5 GiB. */
const EARLY = `#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void begin(void) {
  FILE *out = fopen("/run/ags/out/planted", "w");
  fprintf(stderr, "write: %s\\n", out ? "done" : strerror(errno));
  for (int i = 0; i < 80; i++) { char *some = malloc(64 << 20); if (!some) _exit(3); memset(some, 1, 64 << 20); }
  fprintf(stderr, "memory: got it\\n");
  _exit(4);
}
`;

const attack = (machine: Machine, port: number): string => `${TRY}
try files cat /host${machine.root}/canary
try home ls /host${machine.home}
try write touch /host/usr/planted
try loopback nc -w 3 127.0.0.1 ${port}
try settings cat /all/.git/config
try hidden cat /all/.env
try seen cat /all/README.md
`;

describe.runIf(CAN_COMPOSE).each(ENGINE_CALLERS)('as %s, a compose file cannot', (caller) => {
  let machine: Machine;
  let server: Server;
  let said: Record<string, string>;
  let fromOutside: string;
  const visitors: string[] = [];

  beforeAll(async () => {
    machine = createPlace(caller, hub);
    writeFileSync(join(machine.root, 'canary'), 'CANARY=of this machine\n', { mode: 0o644 });
    server = createServer((request, response) => {
      visitors.push(request.url ?? '');
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
    machine.git('init', '--quiet', '--initial-branch=main');
    machine.git('config', 'remote.origin.url', 'https://token@example.test/');
    machine.write('README.md', 'a file of the project\n');
    machine.write('.env', 'SECRET=1\n');
    machine.write('attack.sh', attack(machine, (server.address() as AddressInfo).port));
    machine.write('docker-compose.yaml', HOSTILE);
    const script = `echo up; read go; curl --silent http://open/; spy=$(docker ps --all --quiet --filter name=spy); docker wait $spy > /dev/null; docker logs $spy`;
    const child = startAgs(machine, ['exec', '--compose', '--', 'sh', '-c', script]);
    let stdout = '';
    const over = new Promise((resolve) => child.on('close', resolve));
    await new Promise<void>((resolve) => {
      child.stdout?.on('data', (chunk: Buffer) => {
        stdout += chunk.toString('utf8');
        resolve();
      });
      void over.then(() => resolve());
    });
    fromOutside = await knock(17_778);
    child.stdin?.end('go\n');
    await over;
    said = { ...outcomes(stdout), open: stdout.includes('served inside') ? 'yes' : stdout };
  }, 180_000);
  afterAll(() => {
    server?.close();
    machine?.[Symbol.dispose]();
  });

  test('fail for another reason: its services are up and see the files of the project', () => {
    expect({ seen: said['seen'], open: said['open'] }).toEqual({ seen: '0 a file of the project', open: 'yes' });
  });

  test.each([
    ['read files of this machine', 'files', /^1 .*No such file/],
    ['list the home of the user', 'home', /^1 .*No such file/],
    ['write to the programs of this machine', 'write', /^1 .*Read-only file system/],
    ['reach a service of this machine', 'loopback', /^1 .*refused/],
    ['read the settings of the repository, which may hold a token', 'settings', /^1 .*No such file/],
    ['read hidden files', 'hidden', /^1 .*No such file/],
  ])('%s', (_what, name, outcome) => {
    expect(said[name]).toMatch(outcome);
  });

  test('open a port on this machine, or reach a service of it', () => {
    expect(fromOutside).toBe('ECONNREFUSED');
    expect(visitors).toEqual([]);
  });

  test.each([
    ['a file beside the project', 'env_file: ../../../canary'],
    ['a file by its absolute path', 'env_file: CANARY'],
    ['a service of a file beside the project', 'extends: { file: ../../../canary, service: x }'],
  ])('make the compose client read %s', async (_what, line) => {
    machine.write(
      'other.yaml',
      `version: "3.4"\nservices:\n  x:\n    image: app:1\n    ${line.replace('CANARY', join(machine.root, 'canary'))}\n`,
    );
    machine.write('ags.yaml', 'compose: { files: [other.yaml] }\n');
    const { code, stdout, stderr } = await runAgs(machine, ['exec', '--', 'echo', 'begun']);
    expect({ code, stdout }).toEqual({ code: 9, stdout: '' });
    expect(stderr).toMatch(/compose files cannot be used:[^]*(Couldn't find|No such file|not found)/);
  });

  test('make the client, with a preloaded library, write here or exhaust the memory of this machine', async () => {
    const source = join(machine.root, 'early.c');
    writeFileSync(source, EARLY);
    execFileSync('gcc', ['-shared', '-fPIC', '-o', join(machine.project, 'early.so'), source]);
    machine.write('quiet.yaml', 'version: "3.4"\nservices:\n  x: { image: "app:1" }\n');
    machine.write('ags.yaml', 'compose: { files: [quiet.yaml], env: { LD_PRELOAD: ./early.so } }\n');
    const { code, stderr } = await runAgs(machine, ['exec', '--', 'echo', 'begun']);
    expect([9, 5, 1]).toContain(code);
    // A killed client's output is not shown; a client that ended by itself shows that the library ran.
    expect(stderr).toMatch(/write: No such file or directory|The compose client was ended/);
    expect(stderr).not.toMatch(/memory: got it|write: done/);
  });

  test('have a link followed in place of the user’s override file', async () => {
    machine.write('ags.yaml', 'compose: { override: planted.yaml }\n');
    symlinkSync(join(machine.root, 'canary'), join(machine.project, 'planted.yaml'));
    const asked = await runAgs(machine, ['exec', '--', 'echo', 'begun']);
    expect({ code: asked.code, stderr: asked.stderr }).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('compose.override: lay your own planted.yaml') as unknown,
    });
    expect((await runAgs(machine, ['trust', '--yes'])).code).toBe(0);
    const { code, stderr } = await runAgs(machine, ['exec', '--', 'echo', 'begun']);
    expect({ code, stderr }).toMatchObject({
      code: 9,
      stderr: expect.stringContaining('planted.yaml cannot be read') as unknown,
    });
  });
});

describe.runIf(CAN_COMPOSE && ENGINE_CALLERS.length > 0)('with privileges', () => {
  test('a service does not start, and says why', async () => {
    using machine = createPlace('root', hub);
    machine.write(
      'compose.yaml',
      'version: "3.4"\nservices:\n  mighty: { image: "app:1", privileged: true, command: sleep 9 }\n',
    );
    const { code, stdout, stderr } = await runAgs(machine, ['exec', '--compose', '--', 'echo', 'begun']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/The service mighty did not come up: .*not permitted/);
  });
});

function knock(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('connect', () => {
      socket.destroy();
      resolve('connected');
    });
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}

if (!CAN_COMPOSE) test.skip('Docker does not answer here, or docker-compose is missing', () => undefined);
