// test/agents/whole-pipeline.ts: `ags start` with the real program of an agent, in a real sandbox, through the real gateway. The model's
// host name leads to a scripted model, with a certificate that the user's machine trusts.
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Agent } from '../../src/agents/agent.ts';
import { createWorld, ORIGIN } from '../gateway/fixture.ts';
import { giveTo, type Caller, type Result } from '../harness.ts';
import { startModel, type Model } from '../model/server.ts';
import type { Scenario } from '../model/scenario.ts';
import { createAgentMachine, type AgentMachine } from '../agent-run/place.ts';
import { programIn } from './programs.ts';

export interface Pipeline extends AsyncDisposable {
  readonly machine: AgentMachine;
  readonly model: Model;
  /** The environment of the user, with the key; also for a terminal. */
  readonly env: Readonly<Record<string, string>>;
  ags(...args: string[]): Promise<Result>;
}

export const REAL_KEY = 'the-real-key-of-the-user';

/** A name of the model's address that no rule allows. */
export const DENIED_HOST = 'denied.test';

/** A hook of the user that refuses every command with the word "forbidden". */
const HOOK = 'grep -q forbidden || exit 0; echo "This is not wanted here." >&2; exit 2';

export async function startPipeline(
  agent: Agent,
  caller: Caller,
  scenario: (project: string) => Scenario,
  {
    postStop = 'exit 0',
    installed = false,
  }: {
    /** A hook of the user that is asked when the agent is done. */
    postStop?: string;
    /** As if ags had installed the program. */
    installed?: boolean;
  } = {},
): Promise<Pipeline> {
  const signIn = agent.signIns.find(({ kind }) => kind === 'api-key');
  if (signIn === undefined || agent.install === null) throw new Error(`${agent.name} takes no key`);
  const machine = createAgentMachine(caller);
  const model = await startModel({ key: REAL_KEY, scenario: scenario(machine.project) });
  const context = await createWorld();
  for (const host of [signIn.secret.host, DENIED_HOST]) context.names.set(host, [ORIGIN]);
  await context.tls(signIn.secret.port, (socket) => {
    const onward = connect(model.port, '127.0.0.1');
    onward.on('error', () => socket.destroy());
    socket.on('close', () => onward.destroy());
    socket.pipe(onward).pipe(socket);
  });
  const config = join(machine.home, '.config/ags');
  mkdirSync(config, { recursive: true });
  writeFileSync(
    join(config, 'config.yaml'),
    `network:\n  dns: ["${context.dns}"]\n  addresses: ["${ORIGIN}/32"]\nhooks:\n  pre-bash:\n    - run: ${JSON.stringify(HOOK)}\n  post-stop:\n    - run: ${JSON.stringify(postStop)}\n`,
  );
  machine.write('../ca.pem', context.authority.certificatePem);
  const env = {
    ...offerProgram(agent, machine, installed),
    NODE_EXTRA_CA_CERTS: join(machine.project, '../ca.pem'),
    [signIn.found[0] ?? '']: REAL_KEY,
  };
  return {
    machine,
    model,
    env,
    ags: (...args) => machine.ags(args, { env, timeoutMs: 110_000 }),
    async [Symbol.asyncDispose]() {
      await machine.ags(['stop', '--all'], { env });
      await model.close();
      await context[Symbol.asyncDispose]();
      machine[Symbol.dispose]();
    },
  };
}

/** Puts the program on the user's PATH or, if it needs another Node, where ags installs it. */
function offerProgram(agent: Agent, machine: AgentMachine, installed: boolean): Record<string, string> {
  const { directory, ownNode, program } = programIn(agent);
  const { version = '', program: name = '' } = agent.install ?? {};
  if (ownNode === null && !installed) {
    const bin = join(machine.root, 'bin');
    mkdirSync(bin);
    symlinkSync(program, join(bin, name));
    return { PATH: `${bin}:${machine.env['PATH'] ?? ''}` };
  }
  const data = join(machine.root, 'data');
  const home = join(data, 'ags/agents', agent.name);
  mkdirSync(home, { recursive: true });
  symlinkSync(directory, join(home, version));
  const installedAt = new Date().toISOString();
  writeFileSync(join(home, 'current.json'), JSON.stringify({ version, node: ownNode, installedAt }));
  giveTo(data, machine.uid);
  return { XDG_DATA_HOME: data };
}
