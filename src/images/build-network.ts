// images/build-network.ts: the network of an image build: a sandbox's network, with the gateway as the only way out.
// A sandbox that only waits provides the network. The steps of the build join it; without a daemon, the whole builder does.
// Invariant: rules decide every connection of a step, and each decision is logged. The network ends with the build.
import { readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { perlProgram } from '../lib/perl.ts';
import { AgsError } from '../protocol/errors.ts';
import type { NetworkPolicy } from '../protocol/network.ts';
import type { HostContext } from '../run/host-context.ts';
import { PROXY_PORT } from '../run/network/plan-network.ts';
import type { DeniedHost } from '../run/network/run-network.ts';
import { runOneOff } from '../run/one-off-sandbox.ts';
import type { Sandbox } from '../sandbox/backend.ts';
import { LABEL, OWNER_LABEL } from '../sandbox/container/container-args.ts';
import type { Surroundings } from '../sandbox/engine/build.ts';
import { ENGINE_KINDS, PROXY_VARIABLES } from '../sandbox/engine/engine-kinds.ts';
import { callEngine, type Engine, engineArgv } from '../sandbox/engine/engine.ts';
import { ownerText } from '../sandbox/engine/owner.ts';
import { findProgram } from '../sandbox/programs.ts';

const NAME = 'image-build';

export interface BuildNetwork extends Surroundings {
  /** Arguments for the builder: the network, and the proxy variables of the steps, which do not stay in the image. */
  readonly args: readonly string[];
}

export async function withBuildNetwork<T>(
  context: HostContext,
  engine: Engine,
  /** A directory of this build alone. */
  dir: string,
  policy: Partial<NetworkPolicy>,
  notice: (text: string) => void,
  use: (network: BuildNetwork) => Promise<T>,
): Promise<{ readonly result: T; readonly denied: readonly DeniedHost[] }> {
  let outcome: Promise<T> | null = null;
  return runOneOff(
    context,
    context.cacheDir,
    {
      name: NAME,
      command: ['sleep', 'infinity'],
      network: policy,
      mounts: [],
      backend: engine.name,
      limits: { wallSeconds: null },
      notice,
      onStart(sandbox) {
        outcome = networkOf(context, engine, dir, sandbox).then(use);
        void outcome.then(
          () => sandbox.kill(),
          () => sandbox.kill(),
        );
      },
    },
    async ({ denied, said }) => {
      if (outcome === null)
        throw new AgsError('image.failed', `The network of the build could not be created. ${said}`);
      return { result: await outcome, denied };
    },
  );
}

async function findPauseContainer(engine: Engine): Promise<string> {
  const mine = ['--filter', `label=${LABEL}=${NAME}`, '--filter', `label=${OWNER_LABEL}=${ownerText()}`];
  const names = (await callEngine(engine, ['ps', ...mine, '--format', '{{.Names}}'])).split('\n');
  const pauseContainer = names.find((name) => name.endsWith('-net'));
  if (pauseContainer === undefined) throw new AgsError('image.failed', 'The network of the build is missing.');
  return pauseContainer;
}

async function networkOf(context: HostContext, engine: Engine, dir: string, sandbox: Sandbox): Promise<BuildNetwork> {
  if (ENGINE_KINDS[engine.name].daemon) {
    const pauseContainer = await findPauseContainer(engine);
    // Only the builder from before BuildKit can join an existing network.
    return { args: networkArgs(`container:${pauseContainer}`), before: [], env: { DOCKER_BUILDKIT: '0' } };
  }
  const perl = findProgram('perl');
  if (sandbox.initPid === null || perl === null)
    throw new AgsError('image.failed', 'The network of the build is missing.');
  const hosts = join(dir, '.hosts');
  writeFileSync(hosts, '127.0.0.1\tlocalhost\n::1\tlocalhost\n', { mode: 0o644 });
  const arch = context.nodeArch === 'arm64' ? 'arm64' : 'x64';
  return {
    // All images were fetched before: there is no registry in here. Control groups are off, because a service manager would get process IDs
    // that mean other processes outside.
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
    before: buildWrapperArgv(engine, { perl, arch, sandboxPid: sandbox.initPid, hosts }),
    env: {},
  };
}

function networkArgs(network: string): string[] {
  const proxy = `http://127.0.0.1:${PROXY_PORT}`;
  const variables = ['http_proxy', 'https_proxy'].flatMap((name) => [
    `${name}=${proxy}`,
    `${name.toUpperCase()}=${proxy}`,
  ]);
  // The client fills these in by itself, passwords included. Naming them without a value removes them.
  const own = PROXY_VARIABLES.filter((name) => !/^https?_/i.test(name));
  return ['--network', network, ...[...variables, ...own].flatMap((one) => ['--build-arg', one])];
}

// mount, unshare, setns, prctl; pidfd_open has the same number on every architecture.
const CALLS = { x64: '165,272,308,157', arm64: '40,97,268,167' } as const;

/**
 * Prepended to the engine's command line, which then says `--network host`. An engine without a daemon builds where its command was
 * started. So it is started in the network of a sandbox, which it takes for the host's, and in its own PID namespace.
 */
function buildWrapperArgv(
  engine: Engine,
  options: {
    readonly perl: string;
    readonly arch: keyof typeof CALLS;
    readonly sandboxPid: number;
    readonly hosts: string;
  },
): string[] {
  return [
    ...(engine.rootless ? engineArgv(engine, ['unshare']) : []),
    options.perl,
    '-e',
    perlProgram('sandbox/perl/build-wrapper.pl'),
    '--',
    CALLS[options.arch],
    String(options.sandboxPid),
    readlinkSync('/proc/self/ns/net'),
    options.hosts,
  ];
}
