// test/agent-setup/fixture.ts: a machine for installing and signing in agents: its own package registry and token server, an origin that
// records requests, and test-only agents (driver.mjs).
// needs: low-ports
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createWorld, ORIGIN, type HostContext } from '../gateway/fixture.ts';
import { createMachine, giveTo, shareReadiness, type Caller, type Machine, type Result } from '../harness.ts';

export const DIST = fileURLToPath(new URL('../../dist', import.meta.url));
export const DRIVER = fileURLToPath(new URL('driver.mjs', import.meta.url));

export interface Place extends AsyncDisposable {
  readonly context: HostContext;
  readonly machine: Machine;
  readonly env: Readonly<Record<string, string>>;
  readonly requests: string[];
  /** The origin's answer to a request head. */
  answer: (head: string) => string;
  readonly tokens: TokenServer;
  readonly registry: Registry;
  ags(args: readonly string[], options?: { input?: string; env?: Record<string, string> }): Promise<Result>;
  start(words: readonly string[], env?: Record<string, string>): ChildProcess;
  drive(words: readonly string[], env?: Record<string, string>): Promise<Result>;
  /** Installs a program of the user. */
  addProgram(path: string, files: Record<string, string>, bin?: string): void;
}

export interface TokenServer {
  readonly asked: { type: string; body: string }[];
  /** Status and body of the answer; may be delayed. */
  answer: (body: string) => Promise<{ status: number; text: string }> | { status: number; text: string };
}

export interface Registry {
  readonly url: string;
  /** Requested paths with the credentials sent. */
  readonly asked: { path: string; authorization: string | undefined }[];
  publish(name: string, version: string, files: Record<string, string>, more?: object, mode?: number): void;
  /** Delays answers to tarballs. */
  hold: Promise<void> | null;
}

export async function createPlace(caller: Caller): Promise<Place> {
  const context = await createWorld();
  const requests: string[] = [];
  const tokens: TokenServer = { asked: [], answer: () => ({ status: 500, text: '' }) };
  context.names.set('tokens.test', [ORIGIN]);
  await context.tls(443, (socket) => {
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      const end = text.indexOf('\r\n\r\n');
      const length = Number(/^content-length: (\d+)/im.exec(text)?.[1] ?? 0);
      if (end < 0 || text.length < end + 4 + length) return;
      const reply = (status: number, body: string): void =>
        void socket.end(
          `HTTP/1.1 ${status} X\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
        );
      if (!/^host: tokens\.test/im.test(text)) {
        requests.push(text);
        return reply(200, place.answer(text));
      }
      const body = text.slice(end + 4);
      tokens.asked.push({ type: /^content-type: (.*)$/im.exec(text)?.[1]?.trim() ?? '', body });
      void Promise.resolve(tokens.answer(body)).then(({ status, text: said }) => reply(status, said));
    });
  });
  const machine = createMachine(caller);
  const { registry, close } = await createRegistry();
  mkdirSync(join(machine.home, '.config/ags'), { recursive: true });
  writeFileSync(
    join(machine.home, '.config/ags/config.yaml'),
    `network:\n  dns: ["${context.dns}"]\n  addresses: ["${ORIGIN}/32"]\n`,
  );
  const ca = join(machine.root, 'origins.pem');
  writeFileSync(ca, context.authority.certificatePem, { mode: 0o644 });
  giveTo(join(machine.home, '.config'), machine.uid);
  const env = { ...machine.env, SSL_CERT_FILE: ca, npm_config_registry: registry.url };
  const identity = process.getuid?.() === 0 ? { uid: machine.uid, gid: machine.uid } : {};
  const start = (words: readonly string[], more: Record<string, string> = {}): ChildProcess => {
    shareReadiness(machine, 'modules');
    return spawn(process.execPath, [DRIVER, DIST, ...words], {
      cwd: machine.project,
      env: { ...env, ...more },
      ...identity,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
  };
  const finish = (child: ChildProcess, input: string): Promise<Result> => {
    let [stdout, stderr] = ['', ''];
    child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString('utf8')));
    child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
    return new Promise((resolve) => child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr })));
  };
  const place: Place = {
    context,
    machine,
    env,
    requests,
    answer: () => 'hello world\n',
    tokens,
    registry,
    start,
    ags: (args, more = {}) => finish(start(['cli', ...args], more.env), more.input ?? ''),
    drive: (words, more) => finish(start(words, more), ''),
    addProgram(path, files, bin) {
      for (const [name, content] of Object.entries(files)) {
        const at = join(machine.root, path, name);
        mkdirSync(dirname(at), { recursive: true });
        writeFileSync(at, content, { mode: 0o755 });
      }
      if (bin !== undefined)
        execFileSync('ln', ['-s', join(machine.root, path, bin), join(machine.root, path, '../link')]);
      giveTo(machine.root, machine.uid);
    },
    async [Symbol.asyncDispose]() {
      close();
      machine[Symbol.dispose]();
      await context[Symbol.asyncDispose]();
    },
  };
  return place;
}

/** Implements as much of the registry API as `npm install` needs. */
async function createRegistry(): Promise<{ registry: Registry; close(): void }> {
  const packages = new Map<string, Record<string, object>>();
  const tarballs = new Map<string, Buffer>();
  const asked: Registry['asked'] = [];
  const server: Server = createServer((request: IncomingMessage, response) => {
    const path = decodeURIComponent(request.url ?? '');
    asked.push({ path, authorization: request.headers.authorization });
    const tarball = tarballs.get(path);
    const versions = packages.get(path.slice(1));
    const send = (): void => {
      if (tarball !== undefined) return void response.end(tarball);
      if (versions === undefined) return void response.writeHead(404).end('{}');
      const latest = Object.keys(versions).at(-1);
      response.setHeader('Content-Type', 'application/json');
      response.end(JSON.stringify({ name: path.slice(1), 'dist-tags': { latest }, versions }));
    };
    if (tarball !== undefined && registry.hold !== null) void registry.hold.then(send);
    else send();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const registry: Registry = {
    url,
    asked,
    hold: null,
    publish(name, version, files, more = {}, mode = 0o755) {
      const dir = mkdtempSync(join(tmpdir(), 'ags-package-'));
      const manifest = { name, version, ...more };
      for (const [path, content] of Object.entries({ 'package.json': JSON.stringify(manifest), ...files })) {
        mkdirSync(dirname(join(dir, 'package', path)), { recursive: true });
        writeFileSync(join(dir, 'package', path), content, { mode });
      }
      execFileSync('tar', ['czf', join(dir, 'package.tgz'), '-C', dir, 'package']);
      const bytes = readFileSync(join(dir, 'package.tgz'));
      rmSync(dir, { recursive: true });
      const path = `/${name}/-/${name}-${version}.tgz`;
      tarballs.set(path, bytes);
      const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
      const dist = { tarball: `${url.slice(0, -1)}${path}`, integrity };
      packages.set(name, { ...packages.get(name), [version]: { ...manifest, dist } });
    },
  };
  return {
    registry,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** An agent in JavaScript that prints its version and runs `logIn` to log in. */
export const acmeProgram = (version: string, logIn = ''): string =>
  `#!/usr/bin/env node
const fs = require('node:fs');
const home = process.env.HOME;
if (process.argv[2] === '--version') console.log('acme ${version}');
else if (process.argv[2] === 'log-in') { ${logIn} }
`;
