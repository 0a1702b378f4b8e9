// test/attacks/mutation/engine-stage.ts: nested Docker, the real one or one with replaced source, and attempts of the table against it.
// They connect to the daemon directly, so only its own protections can stop them.
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { breaches, type Attack } from '../../../src/attack/table/attack.ts';
import { ENGINE_CONTROL } from '../../../src/attack/table/engine.ts';
import { joinSockets } from '../../../src/lib/stream/join-sockets.ts';
import type * as NestedEngine from '../../../src/sandbox/nested/nested-engine.ts';
import type { Machine } from '../../harness.ts';
import type { Use } from './mutated-source.ts';
import { contextOf } from '../own-context.ts';
import { runOnHost } from '../run-inside.ts';
import type { Victims } from '../victims.ts';

export interface EngineStage {
  readonly machine: Machine;
  readonly victims: Victims;
}

/** Small limits, so that the test can reach them. */
export const LIMITS = { memoryBytes: 400 * 2 ** 20, processes: 250, tmpBytes: 2 ** 26 };

/** The attempts that succeed, as "id: answer". Rejects if there is no daemon or if it runs nothing. */
export async function attackEngine(use: Use, stage: EngineStage, attacks: readonly Attack[]): Promise<string[]> {
  const { ENGINE_PORT } = await use(() => import('../../../src/sandbox/nested/engine-args.ts'));
  const engine = await startEngine(use, stage);
  try {
    const [control = '', ...answers] = await ask(() => engine.connect(ENGINE_PORT), stage, [
      ENGINE_CONTROL,
      ...attacks,
    ]);
    const broken = breaches(ENGINE_CONTROL, control);
    // A daemon that runs no container proves nothing.
    if (broken.length > 0) throw new Error(broken.join());
    return attacks.flatMap((one, i) => breaches(one, answers[i] ?? '').map((line) => `${one.id}: ${line}`));
  } finally {
    await engine.close();
  }
}

/** The answer of each attempt, with `connect` as the way to the daemon. */
export async function ask(
  connect: () => Promise<Socket>,
  { victims }: EngineStage,
  attacks: readonly Attack[],
): Promise<string[]> {
  const listener = createServer((socket) => {
    connect().then(
      (inner) => joinSockets(socket, inner),
      () => socket.destroy(),
    );
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  try {
    const port = String((listener.address() as AddressInfo).port);
    const here = attacks.map((one) => ({ ...one, perl: one.perl.replaceAll('2375', port) }));
    return await runOnHost(here, victims.places);
  } finally {
    listener.close();
  }
}

/** Rejects if the check from outside refuses to start it. */
export async function startEngine(
  use: Use,
  { machine, victims }: EngineStage,
): ReturnType<typeof NestedEngine.startNestedEngine> {
  const { startNestedEngine } = await use(() => import('../../../src/sandbox/nested/nested-engine.ts'));
  const { nestedOptions } = await use(() => import('../../../src/run/nested-docker-options.ts'));
  // The Docker client puts these proxies into every container by default.
  const settings = join(machine.root, 'docker');
  mkdirSync(settings, { recursive: true });
  const proxies = { default: { httpProxy: `http://me:${victims.word}@proxy.corp:3128` } };
  writeFileSync(join(settings, 'config.json'), JSON.stringify({ proxies }));
  const env = { ...process.env, DOCKER_CONFIG: settings };
  const config = { docker: { enabled: true, registries: [] }, limits: LIMITS, network: { mode: 'on' } };
  return startNestedEngine({
    ...nestedOptions(
      { ...contextOf(machine), env },
      config as unknown as Parameters<typeof nestedOptions>[1],
      'mutant',
    ),
    trust: '',
    // There is no gateway: connections to a listener are reset.
    onListener: (_name, listener) =>
      void (listener as Server).on('connection', (socket: Socket) => socket.resetAndDestroy()),
    onPorts: () => undefined,
  });
}
