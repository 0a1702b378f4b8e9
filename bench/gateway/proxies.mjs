// bench/gateway/proxies.mjs: starts the measured proxies, each with the same 52 names and with its log, as in normal use.
// Every starter returns how to reach the proxy and its process.
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NAMES } from './names.mjs';
import { listensOn, PORTS, saysLine } from './place.mjs';

const PLACES = NAMES.flatMap((name) => [`${name}:${PORTS.plain}`, name]);
const MOST_CLIENTS = 20_000;

/** The gateway alone, with a decision log. */
export async function startAgs(place, { ags, port, rules = PLACES, env = {} }) {
  const dir = directory(place, `ags-${port}`);
  const socket = join(dir, 'gateway.sock');
  const config = join(dir, 'gateway.yaml');
  // JSON is YAML.
  writeFileSync(
    config,
    JSON.stringify({
      gateway: { listen: [`127.0.0.1:${port}`, `unix:${socket}`], log: join(dir, 'decisions.jsonl') },
      network: {
        defaults: false,
        allow: rules,
        dns: [`127.0.0.1:${PORTS.names}`],
        addresses: ['127.0.0.0/8'],
        limits: { connections: MOST_CLIENTS, perSecond: 100_000, bytesOut: 'none' },
      },
    }),
  );
  const child = place.start([...ags, 'gateway', '--config', config], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  await saysLine(child, 'ready');
  return { child, via: `tcp:${port}`, unix: `unix:${socket}`, dir };
}

/** Debian's configuration, except for the names, the ports and the maximum number of clients (Debian: 100). */
export async function startTinyproxy(place, { port, log }) {
  const dir = directory(place, `tinyproxy-${port}`);
  const names = join(dir, 'names');
  writeFileSync(names, NAMES.map((name) => `^${name.replaceAll('.', '\\.')}$\n`).join(''));
  const config = join(dir, 'tinyproxy.conf');
  const lines = [
    ...(place.isRoot ? ['User tinyproxy', 'Group tinyproxy'] : []),
    `Port ${port}`,
    'Listen 127.0.0.1',
    'Timeout 600',
    'DefaultErrorFile "/usr/share/tinyproxy/default.html"',
    'StatFile "/usr/share/tinyproxy/stats.html"',
    `LogFile "${join(dir, 'tinyproxy.log')}"`,
    `LogLevel ${log ? 'Info' : 'Critical'}`,
    `PidFile "${join(dir, 'tinyproxy.pid')}"`,
    `MaxClients ${MOST_CLIENTS}`,
    'Allow 127.0.0.1',
    'ViaProxyName "tinyproxy"',
    `Filter "${names}"`,
    'FilterDefaultDeny Yes',
    `ConnectPort ${PORTS.plain}`,
    `ConnectPort ${PORTS.tls}`,
  ];
  writeFileSync(config, `${lines.join('\n')}\n`);
  const child = place.start(['tinyproxy', '-d', '-c', config], { stdio: ['ignore', 'ignore', 'inherit'] });
  await listensOn(port, child);
  return { child, via: `tcp:${port}` };
}

/** Debian's configuration for everything not set here: a helper writes the log, and nothing is cached on disk. */
export async function startSquid(place, { port }) {
  const dir = directory(place, `squid-${port}`);
  const names = join(dir, 'names');
  writeFileSync(names, NAMES.map((name) => `${name}\n`).join(''));
  const config = join(dir, 'squid.conf');
  const lines = [
    `http_port 127.0.0.1:${port}`,
    `acl names dstdomain "${names}"`,
    `acl ports port ${PORTS.plain} ${PORTS.tls}`,
    'http_access deny !ports',
    'http_access allow CONNECT names',
    'http_access deny all',
    `access_log daemon:${join(dir, 'access.log')} squid`,
    `cache_log ${join(dir, 'cache.log')}`,
    `pid_filename ${join(dir, 'squid.pid')}`,
    `coredump_dir ${dir}`,
    'cache_effective_user proxy',
    'visible_hostname bench.test',
    'pinger_enable off',
    'shutdown_lifetime 0 seconds',
  ];
  writeFileSync(config, `${lines.join('\n')}\n`);
  const child = place.start(['squid', '-N', '-f', config], { stdio: ['ignore', 'ignore', 'inherit'] });
  await listensOn(port, child);
  return { child, via: `tcp:${port}` };
}

export async function startSrt(place, { srt, port }) {
  const script = fileURLToPath(new URL('srt-proxy.mjs', import.meta.url));
  const child = place.start([process.execPath, script, srt, String(port), NAMES.join(',')]);
  await saysLine(child, 'ready');
  return { child, via: `tcp:${port}` };
}

// Writable for the user that a proxy changes to.
function directory(place, name) {
  const dir = join(place.dir, name);
  mkdirSync(dir, { recursive: true });
  chmodSync(dir, 0o777);
  return dir;
}
