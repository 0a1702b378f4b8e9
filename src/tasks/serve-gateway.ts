// tasks/serve-gateway.ts: a gateway on its own, for containers and clusters: the same rules, doors and log, at places that a file names.
// Invariants: it listens beyond this machine only with a token; a changed file takes effect whole or not at all, and no open
// connection is lost.
import { createHash, timingSafeEqual } from 'node:crypto';
import { chmodSync, rmSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { AgsError } from '../protocol/errors.ts';
import { expandRules } from '../config/presets.ts';
import { readGatewayFile, type GatewayFile } from '../config/gateway-file.ts';
import { serveAdmin } from '../gateway/admin.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { readValue } from '../gateway/values.ts';
import { assembleGateway } from './gateway-load.ts';
import { openRotatingLog } from './rotating-log.ts';
import { prepareSecrets } from './secrets.ts';
import type { World } from './world.ts';

export interface ServedGateway {
  readonly places: readonly string[];
  /** Reads the file again; throws, and changes nothing, if it is wrong. */
  reload(): void;
  close(): Promise<void>;
}

export async function serveGateway(world: World, path: string, notice: (text: string) => void): Promise<ServedGateway> {
  const read = (): GatewayFile => readGatewayFile(path, { ...world, ...placesOf(world, path) });
  const file = read();
  const { config } = file;
  if (file.token === null) for (const place of file.listen) if (!isLocal(place)) throw needsToken(place);
  const token = file.token === null ? null : await readValue(file.token, world);
  const startedMs = world.now().getTime();
  const log = file.log === null ? null : openRotatingLog(file.log, path, world.now);
  const secrets = await prepareSecrets(config.network, config.secrets, world.now);
  const gateway = await assembleGateway(world, secrets, {
    run: 'gateway',
    policy: config.network,
    rules: expandRules(config.network),
    grantAddresses: new Map(),
    log: (decision) => log?.append(decision),
    onLimit: ({ first, reason }) => void (first && notice(`Network: ${reason}.`)),
    onAsk: ({ host, port }) => notice(`Network: ${host}:${port} is asked for.`),
    who: null,
    isToken: token === null ? null : sameAs(token),
  });
  const servers: Server[] = [];
  try {
    for (const place of file.listen) servers.push(await listen(place, entrance(gateway)));
    if (file.admin !== null) servers.push(await listen(file.admin, serveAdmin(gateway, startedMs, Date.now)));
  } catch (error) {
    for (const server of servers) server.close();
    gateway.close();
    throw error;
  }
  return {
    places: file.listen,
    reload: () => gateway.setRules(expandRules(read().config.network)),
    async close() {
      for (const server of servers) server.close();
      gateway.close();
      log?.close();
      for (const place of file.listen) if (place.startsWith('unix:')) rmSync(place.slice(5), { force: true });
    },
  };
}

function entrance(gateway: Gateway): Server {
  return createServer({ allowHalfOpen: true, noDelay: true }, (socket) => gateway.enter({ kind: 'proxy' }, socket));
}

async function listen(place: string, server: Server): Promise<Server> {
  const path = place.startsWith('unix:') ? place.slice(5) : null;
  if (path !== null && statSync(path, { throwIfNoEntry: false })?.isSocket() === true) rmSync(path);
  const [, host = '', port = ''] = /^\[?([^\]]*)\]?:(\d+)$/.exec(place) ?? [];
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(new AgsError('config.invalid', `${place} cannot be listened at: ${cause.message}`, { cause })),
    );
    if (path === null) server.listen({ host, port: Number(port), backlog: BACKLOG }, resolve);
    else server.listen({ path, backlog: BACKLOG }, resolve);
  });
  if (path !== null) chmodSync(path, 0o600);
  return server;
}

const BACKLOG = 4096;

function isLocal(place: string): boolean {
  return place.startsWith('unix:') || place.startsWith('127.') || place.startsWith('[::1]:');
}

function needsToken(place: string): AgsError {
  return new AgsError('config.invalid', `${place} can be reached from other machines, so clients must have a token.`, {
    hint: 'For example: gateway: { tokenFile: /run/secrets/gateway-token }',
  });
}

function sameAs(token: string): (given: string) => boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  const wanted = digest(token);
  return (given) => timingSafeEqual(digest(given), wanted);
}

function placesOf(
  world: World,
  path: string,
): { userConfigFile: string; projectDir: string; memoryTotalBytes: number } {
  return { userConfigFile: path, projectDir: world.cwd, memoryTotalBytes: world.memoryBytes };
}
