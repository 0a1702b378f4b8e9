// attack/table/agents.ts: files that an agent leaves for the user's other agents and editors, which start programs that such files name.
// See attack.ts and table-git.ts. Other spellings count too: some file systems do not tell them apart.
import type { GitAttack } from './attack.ts';

const sh = String.raw;

const SETTINGS = [
  '.claude/settings.json',
  '.claude/settings.local.json',
  '.mcp.json',
  '.cursor/mcp.json',
  '.CuRsOr/Mcp.Json',
  '.codex/config.toml',
  '.gemini/settings.json',
  '.qwen/settings.json',
  'opencode.json',
  '.vscode/settings.json',
  '.VSCODE/Settings.json',
  '.idea/workspace.xml',
  'deep/er/.mcp.json',
  'tools/pyvenv.cfg',
];

export const AGENT_ATTACKS: readonly GitAttack[] = [
  {
    id: 'merge-agent-settings',
    area: 'merge',
    references: ['A119', 'CVE-2025-54135', 'CVE-2025-59944', 'CVE-2026-25725'],
    what: 'have settings taken without a word that make agents and editors of the user start programs, in other spellings too',
    best: 'limited',
    sh: sh`for file in ${SETTINGS.join(' ')}; do mkdir -p "$(dirname $file)"; echo '{"command":"evil"}' > $file; done`,
    judge: (after) =>
      SETTINGS.filter((path) => after.merged.includes(path) || !after.left.includes(path)).map(
        (path) => `${path} was not kept apart`,
      ),
  },
];
