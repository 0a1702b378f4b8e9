// test/agents/own.ts: a turn with a model endpoint and settings of the user's own: instructions, a skill and an MCP server.
import { ownSignIn } from '../../src/agent-setup/own-endpoint.ts';
import type { Agent } from '../../src/agents/agent.ts';
import type { Stage, TurnOptions } from './harness.ts';

const SKILL = '---\nname: weather\ndescription: tells the canary-weather\n---\nSay it.\n';

const SERVER = `import { createInterface } from 'node:readline';
const say = (id, result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize')
    say(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'it', version: '1' } });
  else if (method === 'tools/list')
    say(id, { tools: [{ name: 'canarytool', description: 'it', inputSchema: { type: 'object', properties: {} } }] });
  else if (id !== undefined) say(id, {});
});`;

const PLACES: Readonly<Record<string, readonly [directory: string, instructions: string, servers: string]>> = {
  claude: ['.claude', 'CLAUDE.md', '.claude.json'],
  codex: ['.codex', 'AGENTS.md', '.codex/config.toml'],
  gemini: ['.gemini', 'GEMINI.md', '.gemini/settings.json'],
  qwen: ['.qwen', 'QWEN.md', '.qwen/settings.json'],
  opencode: ['.config/opencode', 'AGENTS.md', '.config/opencode/opencode.json'],
};

/** What a request to the model must then hold. */
export const OWN_SEEN: readonly string[] = ['canary-instruction', 'canary-weather', 'canarytool'];

export function ownTurn(agent: Agent, stage: Stage, model: string): TurnOptions {
  const [directory = '', instructions = '', servers = ''] = PLACES[agent.name] ?? [];
  stage.write('project/server.mjs', SERVER);
  const command = process.execPath;
  const args = [`${stage.project}/server.mjs`];
  const written = servers.endsWith('.toml')
    ? `model = "another"\n\n[mcp_servers.it] # mine\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\n\n[tools]\nweb = true\n`
    : JSON.stringify(
        agent.name === 'opencode'
          ? { mcp: { it: { type: 'local', command: [command, ...args] } }, model: 'another/one' }
          : { mcpServers: { it: { command, args } }, model: 'another' },
      );
  const part = agent.settings.find(({ path }) => path === servers)?.part;
  return {
    signIn: ownSignIn(agent, {
      url: 'https://llm.example.com',
      tls: true,
      host: 'llm.example.com',
      port: 443,
      path: '',
      key: null,
      header: null,
      origin: '',
    }),
    model,
    settings: [
      { path: `${directory}/${instructions}`, content: 'canary-instruction\n' },
      { path: `${directory}/skills/weather/SKILL.md`, content: SKILL },
      { path: servers, content: part?.(written) ?? '' },
    ],
  };
}
