// test/nested-docker/compose.full.test.ts: a project's compose files beside commands, agents and checks, in nested Docker: names, ports, project
// files, failures, and cleanup.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Caller, Machine } from '../harness.ts';
import { startImageHub, type ImageHub } from './image-hub.ts';
import { CAN_COMPOSE, createPlace, ENGINE_CALLERS, left, outcomes, runAgs, startAgs, TRY } from './place.ts';

let hub: ImageHub;
beforeAll(async () => {
  if (CAN_COMPOSE) hub = await startImageHub();
});
afterAll(() => hub?.[Symbol.asyncDispose]());

/** A service from an image, one that is built, and one that ends with success. */
const SHOP = `version: "3.4"
services:
  web:
    image: app:1
    command: httpd -f -p 80 -h /site
    ports: ["0.0.0.0:18080:80"]
    depends_on: [api]
    volumes: ["./site:/site:ro", "./made:/made"]
  api:
    build: api
    command: sh -c 'echo api of $WHO says $$WORD; exec httpd -f -p 9000 -h /www'
  job:
    image: app:1
    command: sh -c 'echo job done'
`;

const FILES = {
  'docker-compose.yaml': SHOP,
  'api/Dockerfile': 'FROM app:1\nRUN echo built > /www/built\nEXPOSE 9000\n',
  'site/index.html': 'site of the project\n',
};

function createShop(caller: Caller, files: Record<string, string> = FILES): Machine {
  const machine = createPlace(caller, hub);
  machine.write('ags.yaml', 'compose: { env: { WHO: the shop } }\nchecks: [curl --silent --fail http://web/]\n');
  for (const [path, content] of Object.entries(files)) machine.write(path, content);
  machine.git('init', '--quiet', '--initial-branch=main');
  machine.git('add', '--all');
  machine.git('commit', '--quiet', '--message=Start');
  return machine;
}

const VISIT = `${TRY}
try web curl --silent --show-error http://web/
try api curl --silent --show-error http://api:9000/built
try published curl --silent --show-error http://127.0.0.1:18080/
try inner sh -c 'docker exec $(docker ps --quiet --filter name=web) wget -q -O - http://api:9000/built'
try said sh -c 'docker logs $(docker ps --quiet --filter name=api)'
try job sh -c 'docker ps --all --filter name=job --format "{{.Status}}" | cut -c 1-10'
`;

const VISITED = {
  web: '0 site of the project',
  api: '0 built',
  published: '0 site of the project',
  inner: '0 built',
  said: '0 api of the shop says more',
  job: '0 Exited (0)',
};

describe.runIf(CAN_COMPOSE && ENGINE_CALLERS.length > 0)('compose files', () => {
  test.each([
    { caller: 'root', backend: 'native' },
    { caller: 'user', backend: 'docker' },
  ] as const)(
    'are up under their names when a command of $caller starts in a $backend sandbox',
    async ({ caller, backend }) => {
      using machine = createShop(caller);
      // The user's override file is not tracked by git.
      machine.write('override.user.yaml', 'version: "3.4"\nservices: { api: { environment: { WORD: more } } }\n');
      const { code, stdout, stderr } = await runAgs(machine, ['exec', '--backend', backend, '--', 'sh', '-c', VISIT]);
      expect({ code, stderr, ...outcomes(stdout) }).toEqual({
        code: 0,
        stderr: 'ags: Compose: starting api, job, web.\n',
        ...VISITED,
      });
      expect(machine.tasks()).toEqual([]);
      expect(readdirSync(machine.stateDir).filter((name) => name.startsWith('.inner-'))).toEqual([]);
    },
    120_000,
  );

  test('beside an agent come from its base commit; the agent waits for the services, and their states and logs are shown', async () => {
    using machine = createShop('root');
    // Checks ignore the agent's changes to compose files.
    machine.write(
      'agent.sh',
      '#!/bin/sh\ncurl --silent http://web/ > web.txt\necho "services: {}" > docker-compose.yaml\n',
      0o755,
    );
    machine.git('add', '--all');
    machine.git('commit', '--quiet', '--message=Agent');
    machine.write('docker-compose.yaml', 'services: { other: { image: none } }\n');
    machine.write('site/index.html', 'changed since\n');
    const { code, stderr } = await runAgs(machine, ['start', 'visit', 'Look around', '--agent', './agent.sh']);
    expect(code, stderr).toBe(0);
    expect(machine.git('show', 'ags/visit:web.txt')).toBe('site of the project\n');
    const { stdout } = await runAgs(machine, ['services', 'visit', '--json']);
    const { services } = JSON.parse(stdout) as { services: Record<string, unknown>[] };
    expect(services.map(({ name, kind, address, ports, url }) => ({ name, kind, address, ports, url }))).toEqual([
      { name: 'api', kind: 'compose', address: '127.77.1.1', ports: [9000], url: 'api:9000' },
      { name: 'job', kind: 'compose', address: '127.77.1.2', ports: [], url: '' },
      { name: 'web', kind: 'compose', address: '127.77.1.3', ports: [80], url: 'web:80' },
    ]);
    expect((await runAgs(machine, ['services', 'logs', 'visit', 'job'])).stdout).toBe('job done\n');
    const events = (await runAgs(machine, ['logs', 'visit', '--json'])).stdout;
    expect(events).toContain('"type":"service.healthy"');
    expect(events).not.toContain('"type":"service.failed"');
    machine.git('checkout', '--quiet', '.');
    const checked = await runAgs(machine, ['check', 'visit']);
    expect(checked.code, checked.stdout + checked.stderr).toBe(0);
  }, 120_000);

  test('that fail keep a command from starting, and the error names the service and the end of its log', async () => {
    using machine = createShop('root', {
      'compose.yaml':
        'version: "3.4"\nservices:\n  sad: { image: "app:1", expose: [80], command: "sh -c \'echo last words; exit 3\'" }\n',
    });
    const { code, stdout, stderr } = await runAgs(machine, ['exec', '--', 'echo', 'begun']);
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'ags: Compose: starting sad.\nags: The service sad ended with 3.\n  last words\n' +
        'Correct the compose files, or run without them: --no-compose\n',
    });
    const without = await runAgs(machine, ['exec', '--no-compose', '--', 'echo', 'begun']);
    expect(without).toEqual({ code: 0, stdout: 'begun\n', stderr: '' });
  });

  test('are removed, with the nested daemon and its data, when their ags is killed', async () => {
    using machine = createShop('root', {
      'docker-compose.yml':
        'version: "3.4"\nservices:\n  still: { image: "app:1", command: sleep 600, volumes: ["data:/data"] }\nvolumes: { data: {} }\n',
    });
    const child = startAgs(machine, ['exec', '--', 'sh', '-c', 'echo up; sleep 600']);
    await new Promise<void>((resolve) => child.stdout?.once('data', () => resolve()));
    const [task = ''] = machine.tasks();
    expect(left(task).length).toBe(2);
    child.kill('SIGKILL');
    for (const end = Date.now() + 30_000; left(task).length > 0 && Date.now() < end;) await sleep(100);
    expect(left(task)).toEqual([]);
    await runAgs(machine, ['cleanup', '--yes']);
    expect(existsSync(join(machine.stateDir, 'tasks', task))).toBe(false);
  }, 120_000);
});

if (!CAN_COMPOSE) test.skip('Docker does not answer here, or docker-compose is missing', () => undefined);
