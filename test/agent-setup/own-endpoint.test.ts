// test/agent-setup/own-endpoint.test.ts: a model endpoint of the user's own, on the loopback of the machine.
// needs: sandbox
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ControlServer } from '../../src/agent-run/control-server.ts';
import { judge } from '../../src/agent-run/outcome.ts';
import type { PlannedAgent } from '../../src/agent-run/plan-agent.ts';
import type { TurnEnd } from '../../src/agent-run/turn.ts';
import { createAgentMachine, type AgentMachine } from '../agent-run/place.ts';
import { giveTo, ONE } from '../harness.ts';

interface Model extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** "GET /v1/models Bearer the-key" */
  readonly asked: string[];
  /** By path; any other: 404. */
  readonly answers: Map<string, (authorization: string | undefined) => [number, object]>;
}

async function startModel(): Promise<Model> {
  const asked: string[] = [];
  const answers: Model['answers'] = new Map();
  const server = createServer((request, response) => {
    const { authorization } = request.headers;
    asked.push([request.method, request.url, authorization].join(' ').trim());
    const [status, body] = answers.get(request.url ?? '')?.(authorization) ?? [404, {}];
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    asked,
    answers,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function configure(machine: AgentMachine, text: string): void {
  mkdirSync(join(machine.home, '.config/ags'), { recursive: true });
  writeFileSync(join(machine.home, '.config/ags/config.yaml'), text);
  giveTo(join(machine.home, '.config'), machine.uid);
}

test('an agent reaches the endpoint with the key that it never sees, and nothing else of the loopback', async () => {
  await using model = await startModel();
  await using other = await startModel();
  using machine = createAgentMachine(ONE);
  model.answers.set('/v1/chat', (key) => [key === 'Bearer the-real-key' ? 200 : 401, { said: 'hello from the model' }]);
  configure(machine, `agents: { command: { url: '${model.url}/v1', key: { env: LLM_KEY }, model: small } }\n`);
  const proxy = 'curl -s -o /dev/null -m 5 -w "%{http_code} " --noproxy "" -x http://127.0.0.1:3128';
  machine.write(
    'agent.sh',
    [
      'echo model=$AGS_MODEL; env | grep -c the-real-key',
      'curl -sS -H "authorization: Bearer mine" "$AGS_MODEL_URL/chat"; echo',
      // Beside the path of the URL, directly, and through the proxy: the same port, and another one.
      'for path in /admin /v1/../admin /v1x; do',
      '  curl -s -o /dev/null -w "%{http_code} " --path-as-is "${AGS_MODEL_URL%/v1}$path"',
      'done; echo',
      `curl -s -o /dev/null -w "%{http_code} " ${model.url}/v1/chat`,
      `for port in ${model.port} ${other.port}; do for host in localhost 127.0.0.1; do`,
      `  ${proxy} http://$host:$port/v1/chat; ${proxy} -p http://$host:$port/v1/chat`,
      'done; done; echo; echo end',
    ].join('\n'),
    0o755,
  );
  machine.git('add', '-A');
  machine.git('commit', '-qm', 'agent');
  const started = await machine.ags(['start', 'own', 'go', '--agent', 'sh ./agent.sh'], {
    env: { LLM_KEY: 'the-real-key' },
  });
  const run = await machine.until('own', ['no-changes', 'ready', 'failed']);
  const said = machine
    .events('own')
    .flatMap((event) => (event.type === 'agent.printed' ? [String(event['text'])] : []))
    .join('\n');
  expect(said, started.stderr).toContain(
    ['model=small', '0', '{"said":"hello from the model"}', '403 400 403 ', `000${' 403 000'.repeat(4)} `, 'end'].join(
      '\n',
    ),
  );
  expect(run.label).toContain(`model at 127.0.0.1:${model.port}`);
  expect(model.asked).toEqual(['GET /v1/chat Bearer the-real-key']);
  expect(other.asked).toEqual([]);
});

test("a project's file that names an endpoint is not followed without approval", async () => {
  await using model = await startModel();
  using machine = createAgentMachine(ONE, {
    'a.txt': '',
    'ags.yaml': `agents: { command: { url: '${model.url}', key: { env: LLM_KEY } } }\n`,
  });
  const refused = await machine.ags(['start', 'evil', 'go', '--agent', 'sh -c "curl $AGS_MODEL_URL"'], {
    env: { LLM_KEY: 'the-real-key' },
  });
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain(
    `agents.command.url: send what command reads and writes to ${model.url}, with LLM_KEY of your environment`,
  );
  expect([model.asked, machine.tasks()]).toEqual([[], []]);
});

test('ags auth tries the key at the endpoint and says what it saw', async () => {
  await using model = await startModel();
  using machine = createAgentMachine(ONE);
  configure(machine, `agents: { qwen: { url: '${model.url}/v1', model: m2 } }\n`);
  const list = { data: [{ id: 'm1' }, { id: 'm2' }] };
  const answer = (right: number, wrong: number): void =>
    void model.answers.set('/v1/models', (key) => [key === 'Bearer a-real-key' ? right : wrong, list]);
  const tried = async (): Promise<unknown> => {
    const { stdout } = await machine.ags(['auth', 'status', 'qwen', '--json']);
    const { agents } = JSON.parse(stdout) as { agents: { provider: string; where: string; tried: object }[] };
    return [agents[0]?.provider, agents[0]?.where, agents[0]?.tried];
  };
  const url = `${model.url}/v1`;
  answer(200, 401);
  expect(await tried()).toEqual([url, 'not needed', { works: false, status: 401, words: 'It wants a key (401).' }]);
  const added = await machine.ags(['auth', 'qwen', '--key-stdin'], { input: 'a-real-key' });
  expect(added).toMatchObject({
    code: 0,
    stdout: `Qwen Code is signed in at ${url} (...-key, kept in a file that only you can read). All tasks use it from now on.\n`,
    stderr: `Tried at ${url}: The key was accepted (200, 2 models; m2 is one of them).\n`,
  });
  for (const [right, wrong, works, words] of [
    [401, 401, false, 'The key was refused (401): it is wrong, revoked, or for another provider.'],
    [403, 403, null, 'It refused the request (403): the key may not list models, or may not be used from here.'],
    [
      404,
      404,
      null,
      `There is nothing at ${url}/models (404). Either it has no list of models, or the path of the URL is wrong.`,
    ],
    [
      200,
      200,
      null,
      'It answers, but also without a key, so whether the key is right was not to be seen (200, 2 models; m2 is one of them).',
    ],
  ] as const) {
    answer(right, wrong);
    expect(await tried()).toEqual([url, 'file', { works, status: right, words }]);
  }
  // The key is for this place alone.
  configure(machine, `agents: { qwen: { url: 'http://localhost:1/v1', model: m2 } }\n`);
  expect(await tried()).toEqual([
    'http://localhost:1/v1',
    'not needed',
    { works: false, status: null, words: 'There was no answer: localhost:1 refused the connection.' },
  ]);
  configure(machine, '');
  expect(await tried()).toEqual([null, 'none', null]);
  const { stderr } = await machine.ags(['auth', 'status', 'qwen'], { env: { OPENAI_BASE_URL: 'http://localhost:1' } });
  expect(stderr).toMatch(/OPENAI_BASE_URL is set in your environment, and ags does not follow it.*agents: \{ qwen/);
});

test('an agent that has no model of its own choice must be told one', async () => {
  using machine = createAgentMachine(ONE);
  configure(machine, 'agents: { qwen: { url: "http://localhost:11434/v1" } }\n');
  const refused = await machine.ags(['start', 'none', 'go', '--agent', 'qwen']);
  expect(refused).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('must be told which model of http://localhost:11434/v1 to use') as string,
  });
});

test('a key whose variable is not set is no sign-in, and the status says so', async () => {
  await using model = await startModel();
  using machine = createAgentMachine(ONE);
  configure(machine, `agents: { qwen: { url: '${model.url}/v1', key: { env: LLM_KEY }, model: m } }\n`);
  const { stdout } = await machine.ags(['auth', 'status', 'qwen']);
  expect(stdout).toContain('no: LLM_KEY is not set');
  expect(stdout).toContain(`qwen at ${model.url}/v1: Not tried. The variable LLM_KEY is not set.`);
  expect((await machine.ags(['agents'])).stdout).toMatch(/qwen .* no: LLM_KEY is not set/);
  expect(model.asked).toEqual([]);
});

test('an agent that its endpoint does not sign in leads to the status of its key', () => {
  const finished = { type: 'agent.finished', ok: false, reason: 'The key is wrong', cause: 'sign-in' } as const;
  const end: TurnEnd = { exitCode: 1, ended: null, notFound: null, finished };
  const control = { reason: null } as ControlServer;
  const planned = (own?: object): PlannedAgent =>
    ({ agent: { name: 'qwen', title: 'Qwen Code' }, signIn: { secret: { own } } }) as unknown as PlannedAgent;
  const said = (own?: object): string | undefined => judge(end, control, planned(own)).reason;
  expect(said({ tls: false, path: '/v1' })).toBe('Qwen Code: The key is wrong. Try its key: ags auth status qwen');
  expect(said()).toBe('Qwen Code: The key is wrong. Sign in again: ags auth qwen');
});
