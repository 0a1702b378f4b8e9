// agent-setup/npm-registry.ts: finds the user's npm registry and what a sandbox needs to reach it: one host and its certificate
// authorities. Settings that could hold a credential stay outside.
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { AgsError } from '../protocol/errors.ts';
import { hostAndPort } from '../protocol/host-name.ts';
import type { NetworkPolicy, NetworkRule } from '../protocol/network.ts';
import { parseRule } from '../protocol/network-rule.ts';
import { run } from '../lib/process/process.ts';
import { visible } from '../lib/sanitize.ts';
import { systemBundle } from '../run/network/system-bundle.ts';
import type { HostContext } from '../run/host-context.ts';

export interface Registry {
  readonly host: string;
  readonly network: Partial<NetworkPolicy>;
  readonly env: Readonly<Record<string, string>>;
  readonly files: readonly { readonly to: string; readonly content: string }[];
}

const AUTHORITIES = '/run/ags/registry-ca.pem';

export async function findRegistry(context: HostContext): Promise<Registry> {
  const { registry, cafile } = await askNpm(context);
  const url = readUrl(registry);
  const bundle = [systemBundle(context), ...(cafile === null ? [] : [readIfThere(cafile)])].join('\n').trim();
  return {
    host: url.host,
    network: reach(url),
    env: {
      npm_config_registry: url.href,
      // The machine's global npm configuration may contain credentials, or paths that do not exist inside.
      npm_config_globalconfig: '/dev/null',
      npm_config_update_notifier: 'false',
      ...(bundle === '' ? {} : { npm_config_cafile: AUTHORITIES }),
    },
    files: bundle === '' ? [] : [{ to: AUTHORITIES, content: `${bundle}\n` }],
  };
}

/** Asks npm itself, because npm merges many files and variables. Runs in "/", so that npm reads no project's file. */
async function askNpm(context: HostContext): Promise<{ registry: string; cafile: string | null }> {
  const env = Object.fromEntries(
    Object.entries(context.env).filter((pair): pair is [string, string] => pair[1] !== undefined),
  );
  const { exitCode, stdout } = await run(['npm', 'config', 'get', 'registry', 'cafile'], {
    cwd: '/',
    env,
    timeoutMs: 60_000,
  });
  if (exitCode === 127)
    throw new AgsError('agent.uninstallable', 'Installing an agent needs npm, and npm is not on your PATH.', {
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
  if (url.username !== '' || url.password !== '') throw wrong('it contains a password, and sandboxes get no passwords');
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw wrong(`${visible(url.protocol)} is not supported`);
  return url;
}

function reach(url: URL): Partial<NetworkPolicy> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port === '' ? (url.protocol === 'http:' ? 80 : 443) : Number(url.port);
  if (host.endsWith('.npmjs.org') && port === 443) return { presets: ['npm'] };
  // Loopback inside is the sandbox's own, so a registry on the host's loopback needs a grant.
  if (host === 'localhost' || host.startsWith('127.') || host === '::1')
    return { tcp: [{ name: 'registry', port, host, hostPort: port, origin: ORIGIN }] };
  const rule = parseRule(hostAndPort(host, port));
  if ('problem' in rule)
    throw new AgsError(
      'agent.uninstallable',
      `npm's registry ${visible(url.host)} cannot be reached: ${rule.problem}.`,
    );
  const allow: NetworkRule = { action: 'allow', ...rule, origin: ORIGIN };
  // A private registry is usually in a private network. This sandbox can reach nothing else.
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
