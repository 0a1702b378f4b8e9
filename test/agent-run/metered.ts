// test/agent-run/metered.ts: a machine whose agents reach a scripted model through an endpoint of the gateway. The agent is a program that
// asks the model by itself, as an agent that cheats would.
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createWorld, ORIGIN } from '../gateway/fixture.ts';
import type { Caller, Result } from '../harness.ts';
import { startModel, type Model, type ModelOptions } from '../model/server.ts';
import { createAgentMachine, type AgentMachine } from './place.ts';

export interface MeteredMachine extends AsyncDisposable {
  readonly machine: AgentMachine;
  readonly model: Model;
  ags(...args: string[]): Promise<Result>;
}

const KEY = 'the-key-of-the-user';

/** Asks the model `$1` times, reports that it used nothing, and never ends. With `once` it gives up at the first failure. */
const ASK = `#!/bin/sh
for i in $(seq "$1"); do
  code=$(curl -s -o /dev/null -w '%{http_code}' \\
    -d '{"model":"gpt-5.5","input":[],"tools":[{"name":"look"}]}' "$MODEL_URL/v1/responses")
  echo '{"type":"agent.said","text":"'$code'"}'
  echo '{"type":"agent.used","inputTokens":0,"outputTokens":0,"costMicros":0}'
  [ "$2" != once ] || [ "$code" = 200 ] || { echo '    at a line of a stack trace' >&2; exit 1; }
done
[ "$2" = once ] || sleep 600
`;

export async function createMeteredMachine(
  caller: Caller,
  {
    config = '',
    more = {},
    ...answers
  }: Pick<ModelOptions, 'scenario' | 'before'> & { config?: string; more?: Readonly<Record<string, string>> },
): Promise<MeteredMachine> {
  const machine = createAgentMachine(caller, { 'ask.sh': ASK, 'a.txt': 'one\n' });
  const model = await startModel({ key: KEY, ...answers });
  const world = await createWorld();
  world.names.set('model.test', [ORIGIN]);
  const port = await world.tls(0, (socket) => {
    const onward = connect(model.port, '127.0.0.1');
    onward.on('error', () => socket.destroy());
    socket.on('close', () => onward.destroy());
    socket.pipe(onward).pipe(socket);
  });
  const folder = join(machine.home, '.config/ags');
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, 'config.yaml'),
    `network:
  dns: ["${world.dns}"]
  addresses: ["${ORIGIN}/32"]
secrets:
  - {name: model, host: "model.test:${port}", header: authorization, send: "Bearer {}", endpoint: MODEL_URL, from: {env: MODEL_KEY}}
${config}`,
  );
  machine.write('../ca.pem', world.authority.certificatePem);
  const env = { ...more, NODE_EXTRA_CA_CERTS: join(machine.project, '../ca.pem'), MODEL_KEY: KEY };
  return {
    machine,
    model,
    ags: (...args) => machine.ags(args, { env }),
    async [Symbol.asyncDispose]() {
      machine[Symbol.dispose]();
      await model.close();
      await world[Symbol.asyncDispose]();
    },
  };
}
