// test/images/devcontainer/devcontainer.full.test.ts: the files of `ags devcontainer init`, opened by @devcontainers/cli with this machine's
// Docker, and tested from inside.
// uses: compose
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { appendFileSync, chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HAS_ENGINE } from '../../conformance/engine.ts';
import { asMember, createMachine, giveTo, type Machine } from '../../harness.ts';
import { makeBaseImage } from './base-image.ts';

const CLI = fileURLToPath(new URL('../../../node_modules/@devcontainers/cli/devcontainer.js', import.meta.url));

const canCompose = spawnSync('docker-compose', ['version']).status === 0;
const CAN = HAS_ENGINE && canCompose;
if (!CAN && process.env['AGS_REQUIRE_ALL'] !== undefined)
  throw new Error('A dev container needs an engine and docker-compose.');

describe.runIf(CAN)('a dev container', () => {
  const image = `ags-devcontainer-test-${process.pid}`;
  let machine: Machine;
  let origin: Server;
  /** Address and port of the origin, as the gateway reaches it. */
  let place = '';
  /** The suffix of its service names. */
  let mark = '';
  let containers: Record<string, string> = {};

  const docker = (...args: string[]): string => execFileSync('docker', args, { encoding: 'utf8' }).trim();
  const project = (): string => `${machine.project.split('/').at(-1)}_devcontainer`;
  const devcontainer = (word: string, ...args: string[]): string => {
    const [program, ...before] = asMember(machine.uid, 'docker');
    const command = [...before, process.execPath, CLI, word, '--workspace-folder', machine.project, ...args];
    return execFileSync(program, command, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...machine.env, PATH: `${machine.root}/bin:${machine.env['PATH'] ?? ''}`, DOCKER_BUILDKIT: '0' },
    });
  };
  /** Runs a command in the dev container as its user. Asynchronous, because the origin is in this process. */
  const inside = (...command: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> =>
    new Promise((resolve) => {
      const args = ['exec', '--user', 'dev', containers['dev'] ?? '', ...command];
      const child = execFile('docker', args, { timeout: 30_000 }, (_, stdout, stderr) =>
        resolve({ code: child.exitCode, stdout: stdout.trim(), stderr: stderr.trim() }),
      );
    });
  const sh = async (script: string): Promise<string> => {
    const { stdout, stderr } = await inside('sh', '-c', script);
    return `${stdout}${stderr}`;
  };

  beforeAll(async () => {
    machine = createMachine('user', { disk: '/var/tmp', name: `code/devc${process.pid}` });
    chmodSync(machine.root, 0o755);
    machine.write(
      'ags.yaml',
      'network:\n  defaults: false\n  allow: [allowed.test]\n  deny: [denied.test]\nservices: { cache: redis }\n',
    );
    await machine.ags(['trust', '--yes']);
    const written = await machine.ags(['devcontainer', 'init']);
    if (written.code !== 0) throw new Error(written.stderr);
    writeFileSync(
      join(machine.project, '.devcontainer/.env'),
      `BASE_IMAGE=${image}\nCACHE_IMAGE=${image}\nMEMORY=1g\n`,
    );
    // The tool asks for the name of the user, who has no account here.
    mkdirSync(join(machine.root, 'bin'));
    writeFileSync(join(machine.root, 'bin/id'), '#!/bin/sh\necho tester\n', { mode: 0o755 });
    giveTo(machine.root, machine.uid);
    makeBaseImage(image);
    const answer = JSON.parse(devcontainer('up').trim().split('\n').at(-1) ?? '') as { outcome: string };
    if (answer.outcome !== 'success') throw new Error(JSON.stringify(answer));
    const ids = docker('ps', '-q', '--filter', `label=com.docker.compose.project=${project()}`).split('\n');
    containers = Object.fromEntries(
      ids.map((id) => {
        const service = docker('inspect', '-f', '{{index .Config.Labels "com.docker.compose.service"}}', id);
        return [service.replace(/-[0-9a-f]{12}$/, ''), id];
      }),
    );
    mark =
      /dev-([0-9a-f]{12})"/.exec(readFileSync(join(machine.project, '.devcontainer/devcontainer.json'), 'utf8'))?.[1] ??
      '';
    const host = docker('network', 'inspect', '-f', '{{(index .IPAM.Config 0).Gateway}}', `${project()}_out-${mark}`);
    origin = createServer((_, response) => response.end('origin speaking\n'));
    await new Promise<void>((resolve) => origin.listen(0, host, resolve));
    place = `${host}:${(origin.address() as AddressInfo).port}`;
  }, 300_000);

  afterAll(() => {
    origin?.close();
    const files = ['-f', join(machine.project, '.devcontainer/docker-compose.yaml')];
    spawnSync('docker-compose', ['-p', project(), ...files, 'down', '-v', '--rmi', 'all', '--timeout', '1']);
    const left = docker('images', '-q', '--filter', `reference=vsc-devc${process.pid}*`).split('\n');
    spawnSync('docker', ['rmi', '-f', image, ...left.filter((id) => id !== '')]);
    machine[Symbol.dispose]();
  }, 60_000);

  test('opens with its services, and its programs find the database', async () => {
    expect(Object.keys(containers).toSorted()).toEqual(['cache', 'dev', 'gateway', 'holder']);
    expect(devcontainer('exec', 'redis-cli', '-h', 'cache', 'ping').trim()).toBe('PONG');
    expect(await sh('redis-cli -u "$REDIS_URL" ping')).toBe('PONG');
    expect(await sh('touch written && ls written')).toBe('written');
  });

  test('runs as an unprivileged user and cannot gain privileges', async () => {
    const facts = await sh(
      'id -u; grep -E "^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):" /proc/self/status; find / -xdev -type f -perm /6000 2>/dev/null; touch /etc/x /usr/x',
    );
    expect(facts.split('\n')).toEqual([
      // The tool gives the user dev the ID of the host user, so that files keep their owner.
      String(machine.uid),
      ...['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].map((name) => `${name}:\t0000000000000000`),
      'NoNewPrivs:\t1',
      'Seccomp:\t2touch: /etc/x: Read-only file system',
      'touch: /usr/x: Read-only file system',
    ]);
    expect(docker('run', '--rm', '--network=none', `${project()}_dev-${mark}`, 'id', '-u')).toBe('1001');
  });

  test('has limits, and no access to the engine or to other containers', async () => {
    const { HostConfig, Mounts } = (
      JSON.parse(docker('inspect', containers['dev'] ?? '')) as {
        HostConfig: Record<string, unknown>;
        Mounts: { Destination: string; RW: boolean; Type: string }[];
      }[]
    )[0] ?? { HostConfig: {}, Mounts: [] };
    expect(HostConfig).toMatchObject({
      Privileged: false,
      ReadonlyRootfs: true,
      PidsLimit: 4096,
      Memory: 1024 ** 3,
      NetworkMode: `container:${docker('inspect', '-f', '{{.Id}}', containers['holder'] ?? '')}`,
    });
    expect(HostConfig['PortBindings'] ?? {}).toEqual({});
    const name = machine.project.split('/').at(-1);
    expect(Mounts.map(({ Destination, RW }) => `${Destination} ${RW ? 'rw' : 'ro'}`).toSorted()).toEqual([
      '/etc/ags ro',
      '/home/dev rw',
      `/workspaces/${name} rw`,
      `/workspaces/${name}/.devcontainer ro`,
      `/workspaces/${name}/.git ro`,
    ]);
    expect(await sh('find / -type s 2>/dev/null')).toBe('');
    expect((await inside('ps', '-o', 'args')).stdout).not.toContain('gateway');
  });

  test('has only loopback, and reaches the gateway only by its listener', async () => {
    const gateway = docker(
      'inspect',
      '-f',
      '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}',
      containers['gateway'] ?? '',
    );
    expect(await sh('ls /sys/class/net; cat /proc/net/route | wc -l')).toBe('lo\n1');
    const direct = async (to: string, port: string): Promise<string> =>
      (
        await inside(
          'node',
          '-e',
          'require("net").connect(+process.argv[2], process.argv[1]).on("connect", () => console.log("in")).on("error", (e) => console.log(e.code))',
          to,
          port,
        )
      ).stdout;
    const [host = '', port = ''] = place.split(':');
    expect(await Promise.all([direct(gateway, '3128'), direct(host, port), direct('1.1.1.1', '443')])).toEqual(
      Array(3).fill('ENETUNREACH'),
    );
  });

  test('reaches a host as soon as the list names it, and lists the rules', async () => {
    expect(await inside('ags', 'net', 'test', place)).toMatchObject({ code: 1 });
    const refused = await sh(`wget -q -O- http://${place}/`);
    expect(refused).toContain('403 ags: ');
    expect(refused).toContain(`The user can allow it with a line in allow-list.txt: ${place}`);
    appendFileSync(join(machine.project, '.devcontainer/allow-list.txt'), `${place}\n`);
    await expect.poll(() => sh(`wget -q -O- http://${place}/`), { timeout: 20_000 }).toBe('origin speaking');
    const tested = await inside('ags', 'net', 'test', place, 'denied.test', '--json');
    expect(
      (JSON.parse(tested.stdout) as { hosts: { host: string; verdict: string }[] }).hosts.map(
        ({ host, verdict }) => `${host} ${verdict}`,
      ),
    ).toEqual([`${place.split(':')[0]} reachable`, 'denied.test refused']);
    const rules = JSON.parse((await inside('ags', 'net', 'rules', '--json')).stdout) as {
      rules: { rule: string; action: string }[];
    };
    expect(rules.rules.map(({ rule, action }) => `${action} ${rule}`)).toEqual([
      'allow allowed.test',
      'deny denied.test',
      `allow ${place}`,
    ]);
    expect((await inside('ags', 'image')).stdout).toContain('This dev container is built from /etc/ags/Dockerfile');
    expect((await inside('ags', 'image', 'build')).code).toBe(9);
  });

  test('cannot change or replace its own configuration', async () => {
    const before = readFileSync(join(machine.project, '.devcontainer/allow-list.txt'), 'utf8');
    for (const attack of [
      'echo evil.test >> .devcontainer/allow-list.txt',
      'echo evil.test >> /etc/ags/allow-list.txt',
      'mv .devcontainer old; mkdir .devcontainer; echo evil.test > .devcontainer/allow-list.txt',
      'rm -rf .devcontainer',
      'touch .devcontainer/docker-compose.override.yml',
      'echo x >> .git/config',
      'mv .git old-git',
    ])
      expect([attack, (await inside('sh', '-c', attack)).code === 0]).toEqual([attack, false]);
    expect(readFileSync(join(machine.project, '.devcontainer/allow-list.txt'), 'utf8')).toBe(before);
    expect(machine.has('.git/HEAD') && machine.has('.devcontainer/docker-compose.yaml')).toBe(true);
  });

  test('keeps working after its gateway was killed and restarted', async () => {
    docker('kill', '--signal', 'KILL', containers['gateway'] ?? '');
    docker('start', containers['gateway'] ?? '');
    await expect
      .poll(async () => (await inside('ags', 'net', 'test', 'evil.test', '--json')).stdout, { timeout: 20_000 })
      .toContain('"verdict": "refused"');
  });

  test('is not disturbed by a clone with the same name that claims to be the same project', async () => {
    const clone = join(machine.root, 'clones', machine.project.split('/').at(-1) ?? '');
    mkdirSync(join(machine.root, 'clones'));
    cpSync(machine.project, clone, { recursive: true });
    giveTo(join(machine.root, 'clones'), machine.uid);
    await machine.ags(['trust', '--yes'], { cwd: clone });
    const written = await machine.ags(['devcontainer', 'init', '--force'], { cwd: clone });
    expect(written.code, written.stderr).toBe(0);
    const volumesOf = (id: string): string[] =>
      docker('inspect', '-f', '{{range .Mounts}}{{if eq .Type "volume"}}{{.Name}} {{end}}{{end}}', id)
        .split(' ')
        .filter((name) => name !== '');
    const all = (): string[] =>
      docker('ps', '-aq', '--no-trunc', '--filter', `label=com.docker.compose.project=${project()}`).split('\n');
    const before = all();
    const compose = (...words: string[]) =>
      spawnSync('docker-compose', ['-p', project(), '-f', join(clone, '.devcontainer/docker-compose.yaml'), ...words], {
        encoding: 'utf8',
        env: { ...process.env, DOCKER_BUILDKIT: '0' },
      });
    const created = compose('up', '--no-start');
    try {
      expect(created.status, created.stderr).toBe(0);
      const more = all().filter((id) => !before.includes(id));
      expect([more.length, before.every((id) => all().includes(id))]).toEqual([before.length, true]);
      const mine = before.flatMap(volumesOf);
      expect(mine.length).toBeGreaterThan(0);
      expect(more.flatMap(volumesOf).filter((name) => mine.includes(name))).toEqual([]);
    } finally {
      compose('down', '-v', '--rmi', 'local', '--timeout', '1');
    }
    expect(await sh('echo here')).toBe('here');
  }, 120_000);
});
