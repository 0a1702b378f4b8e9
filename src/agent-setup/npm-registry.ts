// agent-setup/npm-registry.ts: where the user's npm gets its packages, and what a sandbox needs to get them there: the one host, and the
// authorities that vouch for it. Settings that could hold a credential stay outside.
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { AgsError } from '../protocol/errors.ts';
import { hostAndPort } from '../protocol/host-name.ts';
import type { NetworkPolicy, NetworkRule } from '../protocol/network.ts';
import { parseRule } from '../protocol/network-rule.ts';
import { run } from '../lib/process/process.ts';
import { visible } from '../lib/sanitize.ts';
import { systemBundle } from '../run/network/system-bundle.ts';
import type { World } from '../run/host-context.ts';

export interface Registry {
  readonly host: string;
  readonly network: Partial<NetworkPolicy>;
  readonly env: Readonly<Record<string, string>>;
  readonly files: readonly { readonly to: string; readonly content: string }[];
}

const AUTHORITIES = '/run/ags/registry-ca.pem';

export async function findRegistry(world: World): Promise<Registry> {
  const { registry, cafile } = await askNpm(world);
  const url = readUrl(registry);
  const bundle = [systemBundle(world), ...(cafile === null ? [] : [readIfThere(cafile)])].join('\n').trim();
  return {
    host: url.host,
    network: reach(url),
    env: {
      npm_config_registry: url.href,
      // Of the machine's own npm: it may name credentials, or places that do not exist inside. The user's is not there.
      npm_config_globalconfig: '/dev/null',
      npm_config_update_notifier: 'false',
      ...(bundle === '' ? {} : { npm_config_cafile: AUTHORITIES }),
    },
    files: bundle === '' ? [] : [{ to: AUTHORITIES, content: `${bundle}\n` }],
  };
}

/** npm itself knows best which of its many files and variables counts. Not in a project, whose file would be read too. */
async function askNpm(world: World): Promise<{ registry: string; cafile: string | null }> {
  const env = Object.fromEntries(
    Object.entries(world.env).filter((pair): pair is [string, string] => pair[1] !== undefined),
  );
  const { exitCode, stdout } = await run(['npm', 'config', 'get', 'registry', 'cafile'], {
    cwd: '/',
    env,
    timeoutMs: 60_000,
  });
  if (exitCode === 127)
    throw new AgsError('agent.uninstallable', 'Agents are installed with npm, and there is none on your PATH.', {
      hint: 'Install npm (it comes with Node.js), or install the agent yourself: ags finds it on your PATH.',
    });
  const text = stdout.toString('utf8');
  const value = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(text)?.[1]?.trim() ?? '';
  const cafile = value('cafile');
  return { registry: value('registry'), cafile: cafile === '' || cafile === 'null' ? null : cafile };
}

function readUrl(text: string): URL {
  const wrong = (why: string): AgsError =>
    new AgsError('agent.uninstallable', `npm's setting "registry" cannot be used: ${why}.`, {
      hint: 'See: npm config get registry',
    });
  if (!URL.canParse(text)) throw wrong('it is not a URL');
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') throw wrong('it holds a password, which no sandbox is given');
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw wrong(`${visible(url.protocol)} is not spoken here`);
  return url;
}

function reach(url: URL): Partial<NetworkPolicy> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port === '' ? (url.protocol === 'http:' ? 80 : 443) : Number(url.port);
  if (host.endsWith('.npmjs.org') && port === 443) return { presets: ['npm'] };
  // The sandbox has a loopback of its own.
  if (host === 'localhost' || host.startsWith('127.') || host === '::1')
    return { tcp: [{ name: 'registry', port, host, hostPort: port, origin: ORIGIN }] };
  const rule = parseRule(hostAndPort(host, port));
  if ('problem' in rule)
    throw new AgsError(
      'agent.uninstallable',
      `npm's registry ${visible(url.host)} cannot be reached: ${rule.problem}.`,
    );
  const allow: NetworkRule = { action: 'allow', ...rule, origin: ORIGIN };
  // A registry of one's own is commonly within one's own network; nothing else can be reached in this sandbox.
  return { rules: [allow], addresses: isIP(host) === 0 ? PRIVATE : [] };
}

const ORIGIN = "npm's registry";
const PRIVATE = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7'];

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
