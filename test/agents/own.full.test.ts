// test/agents/own.full.test.ts: the real agents with a model endpoint and settings of the user's own. Those of Qwen Code and
// opencode, which start slowly, are in their own files.
import { expect, test } from 'vitest';
import { claude } from '../../src/agents/claude/claude.ts';
import { codex } from '../../src/agents/codex/codex.ts';
import { gemini } from '../../src/agents/gemini/gemini.ts';
import { startModel } from '../model/server.ts';
import { createStage, KEY } from './harness.ts';
import { OWN_SEEN, ownTurn } from './own.ts';

test.each([
  [claude, 'my/model', '/v1/messages'],
  [codex, 'my/model', '/responses'],
  [gemini, 'my-model', '/v1beta/models/my-model:streamGenerateContent'],
])(
  '$title uses the endpoint, and sees instructions, skills and MCP servers',
  async (agent, name, path) => {
    await using model = await startModel({ key: KEY, scenario: [{ say: 'Done.' }] });
    await using stage = await createStage(agent, model);
    const { events } = await stage.turn({ ...ownTurn(agent, stage, name), hooks: 'asked' });
    expect(events.at(-1)).toMatchObject({ type: 'agent.finished', ok: true });
    // No small task asks for another model.
    expect(new Set(model.requests.map((request) => `${request.path} ${request.keyOk}`))).toEqual(
      new Set([`${path} true`]),
    );
    const bodies = model.requests.map(({ body }) => body as { model?: string });
    expect(new Set(bodies.map((body) => body.model ?? name))).toEqual(new Set([name]));
    for (const one of OWN_SEEN) expect(JSON.stringify(bodies)).toContain(one);
  },
  60_000,
);
