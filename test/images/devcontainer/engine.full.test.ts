// test/images/devcontainer/engine.full.test.ts: nested Docker beside a dev container, opened by @devcontainers/cli, tested from inside and
// from outside.
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { NESTED_BASE } from '../../../src/sandbox/nested/engine-args.ts';
import { HAS_ENGINE } from '../../conformance/engine.ts';
import { asMember, createMachine, giveTo, type Machine } from '../../harness.ts';
import { makeBaseImage } from './base-image.ts';
import { composeTwo } from './compose-two.ts';

const CLI = fileURLToPath(new URL('../../../node_modules/@devcontainers/cli/devcontainer.js', import.meta.url));
const compose = HAS_ENGINE ? composeTwo() : null;
if (compose === null && process.env['AGS_REQUIRE_ALL'] !== undefined)
  throw new Error('An engine beside a dev container needs an engine and Docker Compose 2.');

describe.runIf(compose !== null)('nested Docker of a dev container', () => {
  const image = `ags-dev-engine-test-${process.pid}`;
  let machine: Machine;
  let containers: Record<string, string> = {};
  const project = (): string => `${machine.project.split('/').at(-1)}_devcontainer`;
  const docker = (...args: string[]): string => execFileSync('docker', args, { encoding: 'utf8' }).trim();
  /** Runs a script in the dev container as its user. */
  const sh = (script: string): Promise<{ code: number | null; text: string }> =>
    new Promise((resolve) => {
      const args = ['exec', '--user', 'dev', containers['dev'] ?? '', 'sh', '-c', script];
      const child = execFile('docker', args, { timeout: 60_000 }, (_, stdout, stderr) =>
        resolve({ code: child.exitCode, text: `${stdout}${stderr}`.trim() }),
      );
    });

  beforeAll(async () => {
    machine = createMachine('user', { disk: '/var/tmp', name: `code/deve${process.pid}` });
    chmodSync(machine.root, 0o755);
    machine.write('ags.yaml', 'network: { defaults: false, deny: [denied.test] }\n');
    mkdirSync(join(machine.project, 'rootfs/bin'), { recursive: true });
    copyFileSync('/bin/busybox', join(machine.project, 'rootfs/bin/busybox'));
    machine.write(
      'Dockerfile',
      'FROM scratch\nCOPY rootfs /\nRUN ["/bin/busybox", "sh", "-c", "echo built > /made"]\nCMD ["/bin/busybox", "cat", "/made"]\n',
    );
    await machine.ags(['trust', '--yes']);
    const written = await machine.ags(['devcontainer', 'init', '--docker']);
    if (written.code !== 0) throw new Error(written.stderr);
    expect(written.stderr).toContain(`docker: a private Docker daemon beside it, rootless: user IDs ${NESTED_BASE} to`);
    writeFileSync(join(machine.project, '.devcontainer/.env'), `BASE_IMAGE=${image}\nMEMORY=1g\nDOCKER_MEMORY=2g\n`);
    mkdirSync(join(machine.root, 'bin'));
    writeFileSync(join(machine.root, 'bin/id'), '#!/bin/sh\necho tester\n', { mode: 0o755 });
    giveTo(machine.root, machine.uid);
    makeBaseImage(image, { engine: true });
    const [program, ...before] = asMember(machine.uid, 'docker');
    const up = [CLI, 'up', '--workspace-folder', machine.project, '--docker-compose-path', compose ?? ''];
    const said = execFileSync(program, [...before, process.execPath, ...up], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...machine.env, PATH: `${machine.root}/bin:${machine.env['PATH'] ?? ''}`, DOCKER_BUILDKIT: '0' },
    });
    expect(said).toContain('"outcome":"success"');
    const ids = docker('ps', '-q', '--filter', `label=com.docker.compose.project=${project()}`).split('\n');
    containers = Object.fromEntries(
      ids.map((id) => {
        const service = docker('inspect', '-f', '{{index .Config.Labels "com.docker.compose.service"}}', id);
        return [service.replace(/-[0-9a-f]{12}$/, ''), id];
      }),
    );
    await vi.waitFor(async () => expect((await sh('docker info')).text).toContain('rootless'), { timeout: 60_000 });
  }, 300_000);

  afterAll(() => {
    const files = ['-f', join(machine.project, '.devcontainer/docker-compose.yaml')];
    spawnSync(compose ?? '', ['-p', project(), ...files, 'down', '-v', '--rmi', 'all', '--timeout', '1']);
    const left = docker('images', '-q', '--filter', `reference=*deve${process.pid}*`).split('\n');
    spawnSync('docker', ['rmi', '-f', image, ...left.filter((id) => id !== '')]);
    machine[Symbol.dispose]();
  }, 60_000);

  test("builds and runs the project's image, also with ags image", async () => {
    expect(Object.keys(containers).toSorted()).toEqual(['dev', 'docker', 'gateway', 'holder']);
    const built = await sh('ags image build');
    expect(built, built.text).toMatchObject({ code: 0 });
    const tag = `ags-deve${process.pid}`;
    expect((await sh('ags image')).text).toMatch(
      new RegExp(`^This dev container is built from /etc/ags/Dockerfile[^]*${tag} +latest`),
    );
    expect(await sh(`docker run --rm ${tag}`)).toEqual({ code: 0, text: 'built' });
    expect((await sh('ags image build nothing')).text).toContain('There is no nothing here');
    expect((await sh(`docker run -d -p 8088:80 ${tag} /bin/busybox httpd -f -p 80 -h /`)).code).toBe(0);
    await expect
      .poll(async () => (await sh('wget -Y off -q -O- http://127.0.0.1:8088/made')).text, { timeout: 20_000 })
      .toBe('built');
  });

  test('runs under an unprivileged user ID of this machine, and so do the processes that started it', () => {
    const { HostConfig, Mounts } = (
      JSON.parse(docker('inspect', containers['docker'] ?? '')) as {
        HostConfig: Record<string, unknown>;
        Mounts: { Destination: string; Type: string }[];
      }[]
    )[0] ?? { HostConfig: {}, Mounts: [] };
    expect(HostConfig).toMatchObject({
      Privileged: false,
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      PidsLimit: 4096,
      Memory: 2 * 1024 ** 3,
    });
    expect((HostConfig['CapAdd'] as string[]).map((name) => name.replace(/^CAP_/, '')).toSorted()).toEqual([
      'SETGID',
      'SETUID',
    ]);
    expect(Mounts.map(({ Destination, Type }) => `${Type} ${Destination}`)).toEqual(['volume /var/lib/docker']);
    const facts = docker('top', containers['docker'] ?? '', '-eo', 'pid,args')
      .split('\n')
      .slice(1)
      .flatMap((line) => {
        const [pid = '', ...args] = line.trim().split(/\s+/);
        const status = statusOf(pid);
        // The process has ended.
        if (status === null) return [];
        const of = (name: string): string => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? '';
        return {
          args: args.join(' '),
          uid: Number(of('Uid').split('\t')[0]),
          effective: of('CapEff'),
          filter: of('Seccomp'),
        };
      })
      .filter(({ args }) => !/docker-init/.test(args));
    const engine = facts.filter(({ args }) => /dockerd --rootless/.test(args) && !args.includes('perl'));
    expect(engine).toMatchObject([{ uid: NESTED_BASE, filter: '2' }]);
    // Capabilities in its user namespace do not apply here; processes outside of that namespace have none.
    for (const { args, uid, effective } of facts) {
      expect(uid, args).toBeGreaterThanOrEqual(63_128);
      if (uid < NESTED_BASE) expect(effective, args).toBe('0000000000000000');
    }
  });

  test('reaches no file of this machine or the project, and no host on the internet', async () => {
    const tag = `ags-deve${process.pid}`;
    const marker = join(machine.root, 'marker');
    writeFileSync(marker, 'of the host\n', { mode: 0o644 });
    const look = `docker run --rm --network host --pid host -v /:/host ${tag} /bin/busybox sh -c`;
    const own = `docker run --rm --network host -v /:/host ${tag} /bin/busybox sh -c`;
    expect(
      (
        await sh(
          `${own} 'ls /sys/class/net /host${marker} /host/workspaces /host/etc/ags 2>&1; wget -T 2 -q -O- http://1.1.1.1/'`,
        )
      ).text,
    ).not.toMatch(/^(?!lo$|docker0$|veth)\w+$|of the host|allow-list/m);
    expect((await sh(`${look} 'cat /host${marker}'`)).code).not.toBe(0);
    expect((await sh(`docker run --rm --privileged ${tag} /bin/busybox id`)).code).not.toBe(0);
    // Pulls go through the gateway, which logs its verdict.
    expect((await sh('docker pull denied.test/image')).code).not.toBe(0);
    await expect
      .poll(() => docker('exec', containers['gateway'] ?? '', 'cat', '/var/log/ags/network.jsonl'), { timeout: 20_000 })
      .toMatch(/"host":"denied\.test".*"verdict":"denied"/);
  });

  test('restarts after it was killed', async () => {
    const pid = docker('top', containers['docker'] ?? '', '-eo', 'pid,args')
      .split('\n')
      .find((line) => /dockerd --rootless/.test(line) && !line.includes('perl'))
      ?.trim()
      .split(/\s+/)[0];
    process.kill(Number(pid), 'SIGKILL');
    await expect
      .poll(() => docker('inspect', '-f', '{{.RestartCount}}', containers['docker'] ?? ''), { timeout: 30_000 })
      .not.toBe('0');
    await expect.poll(async () => (await sh('docker info')).text, { timeout: 30_000 }).toContain('rootless');
    // Its images are kept.
    expect((await sh('docker image ls')).text).toContain(`ags-deve${process.pid}`);
  });
});

function statusOf(pid: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return null;
  }
}
