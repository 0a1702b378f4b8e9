// test/e2e/agent-commands.full.test.ts: the real programs of all agents as commands in a sandbox, signed in by the gateway, against a
// scripted model at the address of the real one.
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { DRIVEN } from '../agents/driven.ts';
import { programIn } from '../agents/programs.ts';
import { REAL_KEY, startPipeline, type Pipeline } from '../agents/whole-pipeline.ts';
import { IS_ROOT } from '../harness.ts';
import { openScreen } from './screen.ts';

/** The arguments with which each of them does one goal and ends. */
const ONCE: Readonly<Record<string, readonly string[]>> = {
  claude: ['-p'],
  codex: ['exec'],
  gemini: ['-p'],
  qwen: ['-p'],
  opencode: ['run'],
};

let open: Pipeline | null = null;
afterEach(() => open?.[Symbol.asyncDispose](), 60_000);

// The model listens on port 443, like the real one, which needs root.
describe.runIf(IS_ROOT).each(DRIVEN)('$agent.title', ({ agent, write, run }) => {
  beforeAll(() => void programIn(agent), 600_000);

  test('works as a command, without a question and without the key', async () => {
    const pipeline = await startPipeline(
      agent,
      'user',
      (project) => [
        { say: 'I write.', call: write(project, 'hello.txt') },
        { say: 'I look.', call: run('env > env.txt') },
        { say: 'All is done.' },
      ],
      { installed: true },
    );
    open = pipeline;
    const goal = [...(ONCE[agent.name] ?? []), 'Do the thing.'];
    const done = await pipeline.ags('exec', '--review', 'later', '--name', 'by-hand', '--', agent.name, ...goal);
    expect(done, done.stdout + done.stderr).toMatchObject({ code: 0 });
    expect(done.stdout).toContain('All is done.');
    const [task = ''] = pipeline.machine.tasks();
    const diff = await pipeline.ags('diff', task);
    expect(diff.stdout).toMatch(/hello\.txt[^]*env\.txt|env\.txt[^]*hello\.txt/);
    expect(diff.stdout).toContain('AGS_SANDBOX=1');
    expect(diff.stdout + done.stdout + done.stderr).not.toContain(REAL_KEY);
  }, 180_000);
});

test.runIf(IS_ROOT)(
  'an agent that is typed in a shell is signed in',
  async () => {
    const { agent } = DRIVEN[0] as (typeof DRIVEN)[number];
    const pipeline = await startPipeline(agent, 'user', () => [{ say: 'Hello from the model.' }], { installed: true });
    open = pipeline;
    using screen = await openScreen(pipeline.machine, { env: pipeline.env });
    screen.type('ags shell sh');
    screen.press('Enter');
    await screen.until(/^\$/m);
    screen.type('claude -p "Say hello."');
    screen.press('Enter');
    await screen.until('Hello from the model.');
    screen.type('exit');
    screen.press('Enter');
    await screen.ended();
  },
  120_000,
);
