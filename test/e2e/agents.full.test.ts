// test/e2e/agents.full.test.ts: the real programs of all agents, started by `ags start`, in our sandbox, through our gateway, against a
// scripted model at the address of the real one: a write, a command, a refused command, a denied host, the search for a key, and a
// second turn in the same session, because a hook sends the agent back.
import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Action } from '../../src/protocol/agent-event.ts';
import type { RunFile } from '../../src/protocol/task.ts';
import { BY_CALLER, MISSES_RIPGREP, type Driven } from '../agents/driven.ts';
import { programIn } from '../agents/programs.ts';
import { DENIED_HOST, startPipeline, REAL_KEY, type Pipeline } from '../agents/whole-pipeline.ts';
import { type Caller, IS_ROOT } from '../harness.ts';

/** Gemini CLI reports no exit code of a successful command. */
const SAYS_NO_ZERO = ['gemini'];

/** Input and output tokens of one answer in test/model/, and the number of requests that a turn makes beside the conversation. */
const USAGE: Readonly<Record<string, { each: readonly [number, number]; beside: number }>> = {
  claude: { each: [1000, 20], beside: 0 },
  codex: { each: [1000, 20], beside: 0 },
  // Each turn starts with a request that chooses the model.
  gemini: { each: [100, 10], beside: 1 },
  qwen: { each: [100, 10], beside: 0 },
  opencode: { each: [1000, 20], beside: 0 },
};

/** Words that the search below must find, in files and in processes; it must not find the real key. */
const [IN_FILES, OF_PROCESSES] = ['a-known-word-of-the-user', 'a-process-word-of-the-user'];
const GOAL = `Do the thing. There is ${IN_FILES}.`;
const MORE = 'And the second thing.';
const POST_STOP = `git -C "$AGS_PROJECT" cat-file -e ags/first:second.txt && exit 0; echo '${MORE}' >&2; exit 2`;

const FORBIDDEN = 'echo forbidden > bad.txt';
const OUTWARD = `curl -ksS -m 20 https://${DENIED_HOST}/leaked 2> denied.txt; cat hello.txt > copy.txt; exit 3`;
// The pattern matches all three words, but not itself. Gemini CLI refuses commands that contain $( ).
const SEARCH = [
  `grep -rhaoE -D skip '[a-z-]+-of-the[-]user' "$HOME" "$PWD" /tmp /run /etc 2> errors.txt | sort -u > files.txt`,
  'word=a-process-word',
  `WORD=$word-of-the-user sh -c 'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2> errors.txt' | grep -aoE '[a-z-]+-of-the[-]user' | sort -u > processes.txt`,
  'rm errors.txt',
].join('; ');

interface Told {
  readonly pipeline: Pipeline;
  readonly last: RunFile;
}

async function tell({ agent, write, run }: Driven, caller: Caller, keep: (pipeline: Pipeline) => void): Promise<Told> {
  const pipeline = await startPipeline(
    agent,
    caller,
    (project) => [
      { say: 'I write.', call: write(project, 'hello.txt') },
      { say: 'I try.', call: run(FORBIDDEN) },
      { say: 'I run.', call: run(OUTWARD) },
      { say: 'I look.', call: run(SEARCH) },
      { say: 'The first part is done.' },
      { say: 'I go on.', call: write(project, 'second.txt') },
      { say: 'The second part is done.' },
    ],
    { postStop: POST_STOP },
  );
  keep(pipeline);
  const started = await pipeline.ags('start', 'first', GOAL, '--agent', agent.name);
  expect(started, started.stdout + started.stderr).toMatchObject({ code: 0 });
  return { pipeline, last: pipeline.machine.run('first') };
}

// The model listens on port 443, like the real one, which needs root.
describe.runIf(IS_ROOT).each(BY_CALLER)('$title as $caller', (driven) => {
  const { agent, caller } = driven;
  let open: Pipeline | null = null;
  let told: Told;
  beforeAll(() => void programIn(agent), 600_000);
  beforeAll(async () => {
    told = await tell(driven, caller, (pipeline) => (open = pipeline));
  }, 240_000);
  afterAll(() => open?.[Symbol.asyncDispose](), 60_000);

  const shown = (path: string): string => told.pipeline.machine.git('show', `ags/first:${path}`);
  const events = (type: string): Record<string, unknown>[] =>
    told.pipeline.machine.events('first').filter((event) => event.type === type);
  const asked = (turn: number): string =>
    JSON.stringify(told.pipeline.model.requests.find((request) => request.turn === turn)?.body);

  test('its work is on the branch, and the run is ready', () => {
    expect(told.last).toMatchObject({ state: 'ready', exitCode: 0 });
    expect(told.pipeline.machine.branch('first').filter((path) => !path.startsWith('src/'))).toEqual([
      'README.md',
      'copy.txt',
      'denied.txt',
      'files.txt',
      'hello.txt',
      'processes.txt',
      'second.txt',
    ]);
    expect(shown('hello.txt')).toBe('hi\n');
    expect(shown('copy.txt')).toBe('hi\n');
  });

  test('its messages and tool calls are in the events', () => {
    expect(events('agent.said').map(({ text }) => text)).toEqual([
      'I write.',
      'I try.',
      'I run.',
      'I look.',
      'The first part is done.',
      'I go on.',
      'The second part is done.',
    ]);
    expect(calls(told.pipeline)).toMatchObject(
      [
        { kind: 'write', what: /hello\.txt$/, outcome: 'done' },
        { kind: 'command', what: FORBIDDEN, outcome: 'refused' },
        { kind: 'command', what: OUTWARD, outcome: 'failed', exitCode: 3 },
        {
          kind: 'command',
          what: SEARCH,
          outcome: 'done',
          ...(!SAYS_NO_ZERO.includes(agent.name) ? { exitCode: 0 } : {}),
        },
        { kind: 'write', what: /second\.txt$/, outcome: 'done' },
      ].map((call) => ({
        ...call,
        what: typeof call.what === 'string' ? call.what : expect.stringMatching(call.what),
      })),
    );
  });

  test('its adapter understands everything that it prints', () => {
    expect(events('agent.printed').filter(({ text }) => !MISSES_RIPGREP.test(String(text)))).toEqual([]);
  });

  test('a command that a hook refuses is not run, and the model is told', () => {
    expect(
      events('hook.decided').filter(({ point, verdict }) => point === 'pre-bash' && verdict !== 'allowed'),
    ).toMatchObject([
      { point: 'pre-bash', verdict: 'refused', mode: 'enforced', reason: expect.stringContaining('not wanted here') },
    ]);
    expect(asked(1)).not.toContain('This is not wanted here.');
    expect(asked(2)).toContain('This is not wanted here.');
  });

  test('a host that no rule allows is not reached', () => {
    expect(events('network.denied')).toMatchObject([{ host: DENIED_HOST, port: 443 }]);
    expect(shown('denied.txt')).toMatch(/403|refused|denied/i);
    expect(told.pipeline.model.requests.map(({ path }) => path)).not.toContain('/leaked');
  });

  test('the model gets the real key, which is neither in the sandbox nor in the state directory', () => {
    const { model, machine } = told.pipeline;
    expect(model.requests.filter(({ turn }) => turn !== null)).toHaveLength(7);
    expect(model.requests.filter(({ keyOk, shape }) => !keyOk && shape !== null)).toEqual([]);
    expect(shown('files.txt').split('\n')).toContain(IN_FILES);
    expect(shown('processes.txt').split('\n')).toContain(OF_PROCESSES);
    for (const file of ['files.txt', 'processes.txt']) expect(shown(file)).not.toContain(REAL_KEY);
    expect(filesWith(GOAL, machine.stateDir).map((path) => path.split('/').at(-1))).toContain('task.json');
    expect(filesWith(REAL_KEY, machine.stateDir)).toEqual([]);
  });

  test('a hook that refuses at the end sends it back in the same session', () => {
    const sessions = events('agent.started').map(({ session }) => session);
    expect(sessions).toEqual([told.last.session, told.last.session]);
    expect(told.last.turns).toBe(2);
    const ends = events('hook.decided').filter(({ point }) => point === 'post-stop');
    expect(ends.map(({ verdict, mode }) => [verdict, mode])).toEqual([
      ['refused', 'enforced'],
      ['allowed', 'enforced'],
    ]);
    for (const text of [IN_FILES, 'I write.', 'The first part is done.', MORE]) expect(asked(5)).toContain(text);
  });

  test('its tokens are counted', () => {
    const { each = [0, 0], beside = 0 } = USAGE[agent.name] ?? {};
    const answers = (count: number): number[] => each.map((tokens) => tokens * count);
    const sum = ({ used }: RunFile): (number | undefined)[] => [used?.inputTokens, used?.outputTokens];
    expect(sum(told.last)).toEqual(answers(7 + 2 * beside));
    // A price of each model that it asks is known, also of those that it asks beside the conversation.
    expect(told.last.used?.costMicros).toBeGreaterThan(0);
  });
});

/** Tool calls in order, with their outcome. */
function calls({ machine }: Pipeline): object[] {
  const events = machine.events('first');
  return events
    .filter(({ type }) => type === 'tool.started')
    .map(({ id, action, seq }) => {
      const end = events.find((event) => event.type === 'tool.finished' && event['id'] === id && event.seq > seq);
      const { kind, ...about } = action as Action & { path?: string; command?: string };
      return { kind, what: about.command ?? about.path, outcome: end?.['outcome'], exitCode: end?.['exitCode'] };
    });
}

function filesWith(text: string, directory: string): string[] {
  try {
    return execFileSync('grep', ['-rlaF', '-D', 'skip', '--', text, directory], { encoding: 'utf8' })
      .trim()
      .split('\n');
  } catch (error) {
    if ((error as { status?: number }).status === 1) return [];
    throw error;
  }
}
