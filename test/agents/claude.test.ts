// test/agents/claude.test.ts: the real Claude Code, from npm, does what a scripted model says.
import { beforeAll, describe, expect, test } from 'vitest';
import { claude } from '../../src/agents/claude.ts';
import type { AgentEvent } from '../../src/protocol/agent-event.ts';
import { startModel, type Model } from '../model/server.ts';
import type { Scenario } from '../model/scenario.ts';
import { createStage, KEY, type Stage } from './harness.ts';
import { programOf } from './programs.ts';

beforeAll(() => void programOf(claude), 600_000);

test('try', async () => {
  const model = await startModel({ key: KEY, scenario: [] });
  await using stage = await createStage(claude, model);
  model.setScenario([
    { say: 'I write.', call: { tool: 'Write', input: { file_path: `${stage.project}/hello.txt`, content: 'hi\n' } } },
    { say: 'I try.', call: { tool: 'Bash', input: { command: 'echo forbidden > bad.txt' } } },
    { say: 'I run.', call: { tool: 'Bash', input: { command: 'cat hello.txt; exit 3' } } },
    { say: 'Done.' },
    { say: 'More.' },
  ]);
  stage.write('project/CLAUDE.md', 'MARKER-OF-THE-PROJECT');
  const first = await stage.turn();
  console.log(JSON.stringify(first.events, null, 1), first.code, JSON.stringify(stage.asked));
  console.log(
    model.requests.map(
      (r) => `${r.method} ${r.path} ${r.turn} ${r.keyOk} ${JSON.stringify(r.body).includes('MARKER-OF-THE-PROJECT')}`,
    ),
  );
  const second = await stage.turn({ session: first.session });
  console.log(JSON.stringify(second.events), second.code);
  const third = await stage.turn({ key: 'wrong' });
  console.log(JSON.stringify(third.events), third.code);
  await model.close();
});
