// network/rule-files.ts: rules in configuration files, and the approval that goes with a change of a project's own file.
// Invariant: an approval is for exactly the bytes that were written here, and only if everything they ask for was approved before
// or is the change itself. Everything else stays pending.
import { mkdirSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgsError } from '../protocol/errors.ts';
import { formatRule, parseRule } from '../protocol/network-rule.ts';
import type { NetworkRule } from '../protocol/network.ts';
import { tryLock } from '../lib/process/lock.ts';
import type { ConfigInput, EffectiveConfig } from '../config/effective.ts';
import { readProject } from '../config/load.ts';
import { environmentLayers } from '../config/flags.ts';
import { mergeLayers } from '../config/merge.ts';
import { readLayerFiles, type LayerFile } from '../config/file/read.ts';
import { findProject } from '../run/project.ts';
import { configInput, type HostContext } from '../run/host-context.ts';

export interface WrittenRules {
  /** Its name in messages. */
  readonly label: string;
  readonly path: string;
  /** The rules that are new. */
  readonly added: readonly string[];
  /** Rules of the opposite list that were removed. */
  readonly dropped: readonly string[];
  /** For a project's file: approved, or pending because it asks for something that the user has not approved. */
  readonly trust: 'approved' | 'pending' | null;
}

/** Reads the files, approved or not: this shows and changes rules, and starts nothing. */
export async function projectConfig(context: HostContext): Promise<{ input: ConfigInput; config: EffectiveConfig }> {
  const { root } = await findProject({
    cwd: context.cwd,
    home: context.home,
    stateDir: context.stateDir,
    cacheDir: context.cacheDir,
    configHome: context.env['XDG_CONFIG_HOME'],
  });
  const input: ConfigInput = configInput(context, root);
  const { layers, files } = await readProject(input);
  return { input, config: mergeLayers([...layers, ...environmentLayers(input.allowVariable)], input, files) };
}

/** All rules have the same action. */
export async function writeRules(
  input: ConfigInput,
  now: Date,
  scope: 'project' | 'always',
  rules: readonly NetworkRule[],
): Promise<WrittenRules> {
  using _ = await waitForTurn(input.stateDir);
  const before = await readTrusted(input);
  const file = fileOf(input, scope);
  const list = rules[0]?.action ?? 'allow';
  const { parseLayer } = await import('../config/file/parse.ts');
  const { network } = parseLayer(file).values;
  const same = (text: string, rule: NetworkRule): boolean => spelling(text) === formatRule(rule);
  const add = rules.filter((rule) => !(network?.[list] ?? []).some((text) => same(text, rule))).map(formatRule);
  const drop = (network?.[list === 'allow' ? 'deny' : 'allow'] ?? []).filter((text) =>
    rules.some((rule) => same(text, rule)),
  );
  const done = { label: file.label, path: file.path, added: add, dropped: drop };
  if (add.length === 0 && drop.length === 0)
    return { ...done, trust: scope === 'always' ? null : before.trusted ? 'approved' : 'pending' };

  const { editRules, writeWhole } = await import('../config/file/edit-file.ts');
  const bytes = editRules(file, { list, add, drop });
  mkdirSync(dirname(file.path), { recursive: true, mode: 0o700 });
  writeWhole(file.path, bytes, scope === 'project' ? 0o644 : 0o600);
  return { ...done, trust: scope === 'always' ? null : await keepTrust(input, now, bytes, before, rules) };
}

interface Trusted {
  readonly trusted: boolean;
  readonly asks: readonly string[];
}

async function readTrusted(input: ConfigInput): Promise<Trusted> {
  const { asks, bytes } = await readProject(input);
  const { isTrusted } = await import('../config/trust.ts');
  return { trusted: isTrusted({ ...input, bytes, asks }), asks };
}

async function keepTrust(
  input: ConfigInput,
  now: Date,
  written: Uint8Array,
  before: Trusted,
  rules: readonly NetworkRule[],
): Promise<WrittenRules['trust']> {
  const { asks, bytes } = await readProject(input);
  const { approve, isTrusted } = await import('../config/trust.ts');
  if (isTrusted({ ...input, bytes, asks })) return 'approved';
  // Another program may have written the file in the meantime.
  if (Buffer.compare(written, bytes) !== 0 || !isCovered(before, asks, rules)) return 'pending';
  approve({ ...input, bytes, asks, now });
  return 'approved';
}

/** Everything that the file asks for was approved before, or is a rule that the user has just allowed. */
export function isCovered(before: Trusted, asks: readonly string[], rules: readonly NetworkRule[]): boolean {
  const allowed = rules.map((rule) => `network.allow: reach ${formatRule(rule)}`);
  const known = new Set([...before.asks.map(withoutPlace), ...allowed]);
  return before.trusted && asks.every((one) => known.has(withoutPlace(one)));
}

/** An ask is the same wherever its line is. */
function withoutPlace(ask: string): string {
  return ask.replace(/^.*?:\d+: /, '');
}

function spelling(text: string): string | null {
  const rule = parseRule(text);
  return 'problem' in rule ? null : formatRule(rule);
}

function fileOf(input: ConfigInput, scope: 'project' | 'always'): LayerFile {
  const kind = scope === 'project' ? 'project' : 'user';
  const path = scope === 'project' ? join(input.projectDir, 'ags.yaml') : input.userConfigFile;
  const label = scope === 'project' ? 'ags.yaml' : path;
  const found = readLayerFiles(input).find((file) => file.kind === kind);
  if (found === undefined) return { kind, path, label, bytes: Buffer.alloc(0) };
  // The user's own file may be a link into a directory of dotfiles; a project's link could lead anywhere.
  const real = realpathSync(path);
  if (kind === 'project' && real !== join(realpathSync(input.projectDir), 'ags.yaml'))
    throw new AgsError('config.invalid', 'ags.yaml is a symbolic link, and ags does not write through links.', {
      hint: `Write the rule into ${real} yourself.`,
    });
  return { ...found, path: real };
}

/** Concurrent commands must not overwrite each other. */
async function waitForTurn(stateDir: string): Promise<Disposable> {
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  for (let round = 0; round < 200; round++) {
    const lock = tryLock(join(stateDir, 'edit.lock'));
    if (lock !== null) return lock;
    await sleep(25);
  }
  throw new AgsError('task.busy', 'Another command is changing the configuration.', { hint: 'Try again.' });
}
