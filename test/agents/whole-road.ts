// test/agents/whole-road.ts: `ags start` with the real program of an agent, in a real sandbox, through the real gateway. Its model
// host is an origin of the tests: a name that leads to it, a certificate that the user's machine trusts, and the scripted model.
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Agent } from '../../src/agents/agent.ts';
import { createWorld, ORIGIN } from '../gateway/fixture.ts';
import { createMachine, type Caller, type Machine, type Result } from '../harness.ts';
import { startModel, type Model } from '../model/server.ts';
import type { Scenario } from '../model/scenario.ts';
import { programOf } from './programs.ts';

export interface Road extends AsyncDisposable {
  readonly machine: Machine;
  readonly model: Model;
  /** What ags prints, with events as JSON if asked to. */
  ags(...args: string[]): Promise<Result>;
}

export const REAL_KEY = 'the-real-key-of-the-user';

/** A hook of the user's own refuses whatever speaks of "forbidden". */
const HOOK = 'grep -q forbidden || exit 0; echo "This is not wanted here." >&2; exit 2';

export async function openRoad(agent: Agent, caller: Caller, scenario: (project: string) => Scenario): Promise<Road> {
  // What follows the node that runs it, if it needs one.
  const program = programOf(agent).at(-1) ?? '';
  const signIn = agent.signIns.find(({ kind }) => kind === 'api-key');
  if (signIn === undefined || agent.install === null) throw new Error(`${agent.name} takes no key`);
  const machine = createMachine(caller);
  const model = await startModel({ key: REAL_KEY, scenario: scenario(machine.project) });
  const world = await createWorld();
  world.names.set(signIn.secret.host, [ORIGIN]);
  await world.tls(signIn.secret.port, (socket) => {
    const onward = connect(model.port, '127.0.0.1');
    onward.on('error', () => socket.destroy());
    socket.on('close', () => onward.destroy());
    socket.pipe(onward).pipe(socket);
  });
  const config = join(machine.home, '.config/ags');
  mkdirSync(config, { recursive: true });
  writeFileSync(
    join(config, 'config.yaml'),
    `network:\n  dns: ["${world.dns}"]\n  addresses: ["${ORIGIN}/32"]\nhooks:\n  pre-any:\n    - run: ${JSON.stringify(HOOK)}\n`,
  );
  const bin = join(machine.root, 'bin');
  mkdirSync(bin);
  symlinkSync(program, join(bin, agent.install.program));
  machine.write('../ca.pem', world.authority.certificatePem);
  const env = {
    PATH: `${bin}:${machine.env['PATH'] ?? ''}`,
    NODE_EXTRA_CA_CERTS: join(machine.project, '../ca.pem'),
    [signIn.found[0] ?? '']: REAL_KEY,
  };
  return {
    machine,
    model,
    ags: (...args) => machine.ags(args, { env, timeoutMs: 110_000 }),
    async [Symbol.asyncDispose]() {
      await machine.ags(['stop', '--all'], { env });
      await model.close();
      await world[Symbol.asyncDispose]();
      machine[Symbol.dispose]();
    },
  };
}
