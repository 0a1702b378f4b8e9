// bench/gateway/alone.mjs: starts a proxy, then a client without a sandbox, with the proxy in its environment. Argument:
// { kind: 'ags', ags, config } or { kind: 'srt', directory, settings }, and the client's command.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { saysLine } from './place.mjs';

const { kind, client, ...how } = JSON.parse(process.argv[2]);
const { proxy, stop } = await { ags: startAgs, srt: startSrt }[kind](how);
const [program, ...args] = client;
const child = spawn(program, args, { stdio: 'inherit', env: { ...process.env, http_proxy: proxy } });
const code = await new Promise((resolve) => child.once('close', resolve));
stop();
process.exit(code ?? 1);

async function startAgs({ ags, config, port }) {
  const [file, ...rest] = [...ags, 'gateway', '--config', config];
  const gateway = spawn(file, rest, { stdio: ['ignore', 'pipe', 'ignore'] });
  await saysLine(gateway, 'ready');
  return { proxy: `http://127.0.0.1:${port}`, stop: () => gateway.kill() };
}

/** Starts it as a library user does, with its address guard and its password. */
async function startSrt({ directory, settings }) {
  const { SandboxManager } = await import(pathToFileURL(join(directory, 'dist/index.js')).href);
  await SandboxManager.initialize(JSON.parse(readFileSync(settings, 'utf8')));
  const port = SandboxManager.getProxyPort();
  return { proxy: `http://client:${SandboxManager.getProxyAuthToken()}@127.0.0.1:${port}`, stop: () => undefined };
}
