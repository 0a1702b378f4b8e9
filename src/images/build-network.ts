// images/build-network.ts: the network of a build: that of a sandbox, with the same gateway as its one way out.
// A sandbox is started that does nothing but wait; the steps of the build join its network, or, without a daemon, the whole builder does.
// Invariant: whatever a step connects to is decided by rules and is in the log; when the build is over, so is the network.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { NetworkPolicy } from '../protocol/network.ts';
import { LABEL, OWNER_LABEL } from '../sandbox/container/container-args.ts';
import { buildRoomArgv } from '../sandbox/container/build-wrapper.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import { tellEngine, type Engine } from '../sandbox/engine/engine.ts';
import type { Surroundings } from '../sandbox/engine/build.ts';
import { ENGINE_KINDS, PROXY_VARIABLES } from '../sandbox/engine/engine-kinds.ts';
import { findProgram } from '../sandbox/checks/host.ts';
import { ownerText } from '../sandbox/engine/owner.ts';
import { runApart } from '../run/one-off-sandbox.ts';
import { PROXY_PORT } from '../run/network/plan-network.ts';
import type { DeniedHost } from '../run/network/run-network.ts';
import type { World } from '../run/host-context.ts';

const NAME = 'image-build';

export interface BuildNetwork extends Surroundings {
  /** For the builder: which network, and the proxy that steps see, of which nothing stays in the image. */
  readonly args: readonly string[];
}

export async function withBuildNetwork<T>(
  world: World,
  engine: Engine,
  /** Of this build alone. */
  dir: string,
  policy: Partial<NetworkPolicy>,
  notice: (text: string) => void,
  use: (network: BuildNetwork) => Promise<T>,
): Promise<{ readonly result: T; readonly denied: readonly DeniedHost[] }> {
  let outcome: Promise<T> | null = null;
  return runApart(
    world,
    world.cacheDir,
    {
      name: NAME,
      command: ['sleep', 'infinity'],
      network: policy,
      mounts: [],
      backend: engine.name,
      limits: { wallSeconds: null },
      notice,
      onStart(sandbox) {
        outcome = networkOf(world, engine, dir, sandbox).then(use);
        void outcome.then(
          () => sandbox.kill(),
          () => sandbox.kill(),
        );
      },
    },
    async ({ denied, said }) => {
      if (outcome === null) throw new AgsError('image.failed', `The network of the build could not be made. ${said}`);
      return { result: await outcome, denied };
    },
  );
}

async function findHolder(engine: Engine): Promise<string> {
  const mine = ['--filter', `label=${LABEL}=${NAME}`, '--filter', `label=${OWNER_LABEL}=${ownerText()}`];
  const names = (await tellEngine(engine, ['ps', ...mine, '--format', '{{.Names}}'])).split('\n');
  const holder = names.find((name) => name.endsWith('-net'));
  if (holder === undefined) throw new AgsError('image.failed', 'The network of the build is not there.');
  return holder;
}

async function networkOf(world: World, engine: Engine, dir: string, sandbox: Sandbox): Promise<BuildNetwork> {
  if (ENGINE_KINDS[engine.name].daemon) {
    const holder = await findHolder(engine);
    // The builder that joins a network is the one that engines had before BuildKit.
    return { args: networkArgs(`container:${holder}`), before: [], env: { DOCKER_BUILDKIT: '0' } };
  }
  const perl = findProgram('perl');
  if (sandbox.initPid === null || perl === null)
    throw new AgsError('image.failed', 'The network of the build is not there.');
  const hosts = join(dir, '.hosts');
  writeFileSync(hosts, '127.0.0.1\tlocalhost\n::1\tlocalhost\n', { mode: 0o644 });
  const arch = world.nodeArch === 'arm64' ? 'arm64' : 'x64';
  return {
    // Whatever is to be fetched has been fetched before: in here there is no registry. A service manager would be told numbers of processes that
    // mean others outside: nobody is asked for control groups.
    args: [
      ...networkArgs('host'),
      '--dns',
      '127.0.0.1',
      '--http-proxy=false',
      '--isolation',
      'oci',
      '--pull=never',
      '--cgroup-manager',
      'cgroupfs',
    ],
    before: buildRoomArgv(engine, { perl, arch, sandboxPid: sandbox.initPid, hosts }),
    env: {},
  };
}

function networkArgs(network: string): string[] {
  const proxy = `http://127.0.0.1:${PROXY_PORT}`;
  const variables = ['http_proxy', 'https_proxy'].flatMap((name) => [
    `${name}=${proxy}`,
    `${name.toUpperCase()}=${proxy}`,
  ]);
  // Those that the client would fill in by itself, with passwords, are taken away by their names alone.
  const own = PROXY_VARIABLES.filter((name) => !/^https?_/i.test(name));
  return ['--network', network, ...[...variables, ...own].flatMap((one) => ['--build-arg', one])];
}
