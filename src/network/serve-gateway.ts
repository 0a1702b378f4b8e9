// network/serve-gateway.ts: a gateway on its own, for containers and clusters: the same rules, doors and log, at places that a file or
// the command line names.
// Invariants: it listens beyond this machine only with a token; changed files take effect all together or not at all, and no open
// connection is lost.
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type Server } from 'node:net';
import { basename } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import type { NetworkRule } from '../protocol/network.ts';
import { readAllowList } from '../config/network/allow-list.ts';
import { readGatewayFile, type GatewayFile } from '../config/network/gateway-file.ts';
import { expandRules } from '../config/network/presets.ts';
import { watchFiles } from '../lib/stream/watch-files.ts';
import { serveAdmin } from '../gateway/admin.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { readValue } from '../gateway/values.ts';
import { assembleGateway } from '../run/network/open-gateway.ts';
import { listenAt } from './listen.ts';
import { openRotatingLog } from './rotating-log.ts';
import { prepareSecrets } from '../run/network/secrets.ts';
import type { World } from '../run/host-context.ts';

export interface ServeInput {
  /** A file with the keys of ags.yaml. */
  readonly config: string | null;
  /** Files with a host on each line. */
  readonly lists: readonly string[];
  /** A Unix socket to listen at, besides what `config` names. */
  readonly socket: string | null;
  readonly log: string | null;
}

export interface ServedGateway {
  readonly places: readonly string[];
  /** Reads the files again; throws, and changes nothing, if one is wrong. Called by itself when one has changed. */
  reload(): void;
  close(): void;
}

export async function serveGateway(
  world: World,
  input: ServeInput,
  notice: (text: string) => void,
): Promise<ServedGateway> {
  const files = [...(input.config === null ? [] : [input.config]), ...input.lists];
  const watch = watchFiles(files);
  const { file, rules, listen, admin } = readFiles(world, input);
  const { config } = file;
  if (file.token === null) for (const place of listen) if (!isLocal(place)) throw needsToken(place);
  const token = file.token === null ? null : await readValue(file.token, world);
  const startedMs = world.now().getTime();
  const logFile = input.log ?? file.log;
  const log = logFile === null ? null : openRotatingLog(logFile, files[0] ?? '', world.now);
  const secrets = await prepareSecrets(config.network, config.secrets, world.now);
  const gateway = await assembleGateway(world, secrets, {
    run: 'gateway',
    policy: config.network,
    rules,
    grantAddresses: new Map(),
    log: (decision) => log?.append(decision),
    onLimit: ({ first, reason }) => void (first && notice(`Network: ${reason}.`)),
    onAsk: ({ host, port }) => notice(`Network: ${host}:${port} is asked for.`),
    who: null,
    isToken: token === null ? null : sameAs(token),
    // Here there is nobody to run `ags allow` for.
    remedy: (host) => `with a line in ${basename(input.lists[0] ?? input.config ?? '')}: ${host}`,
  });
  const open: Disposable[] = [];
  const close = (): void => {
    for (const one of open.toReversed()) one[Symbol.dispose]();
    gateway.close();
    log?.close();
  };
  try {
    for (const place of listen) open.push(await listenAt(place, entrance(gateway)));
    if (admin !== null) open.push(await listenAt(admin, serveAdmin(gateway, startedMs, Date.now)));
  } catch (error) {
    close();
    throw error;
  }
  const reload = (): void => gateway.setRules(readFiles(world, input).rules);
  open.push(watch.start(() => tellReload(reload, notice)));
  return { places: listen, reload, close };
}

/** A wrong file changes nothing, and is told. */
export function tellReload(reload: () => void, notice: (text: string) => void): void {
  try {
    reload();
    notice('The rules were read again.');
  } catch (error) {
    if (!(error instanceof AgsError)) throw error;
    notice(`${error.message} The rules stay as they were.`);
  }
}

interface Files {
  readonly file: GatewayFile;
  readonly rules: readonly NetworkRule[];
  readonly listen: readonly string[];
  readonly admin: string | null;
}

function readFiles(world: World, input: ServeInput): Files {
  const file = readGatewayFile(input.config, {
    ...world,
    userConfigFile: input.config ?? '',
    projectDir: world.cwd,
    memoryTotalBytes: world.memoryBytes,
  });
  const own = input.socket === null ? [] : [`unix:${input.socket}`];
  const listen = [...file.listen, ...own];
  if (listen.length === 0)
    throw new AgsError('config.invalid', `${input.config} does not say where to listen (gateway.listen).`, {
      hint: 'For example: gateway: { listen: ["127.0.0.1:3128"] }',
    });
  return {
    file,
    rules: [...expandRules(file.config.network), ...input.lists.flatMap(readAllowList)],
    listen,
    admin: file.admin ?? (input.socket === null ? null : `unix:${adminSocket(input.socket)}`),
  };
}

/** Where a gateway at this socket says how it is: beside it, so that who asks leaves no line in the log. */
export function adminSocket(socket: string): string {
  return `${socket}.admin`;
}

function entrance(gateway: Gateway): Server {
  return createServer({ allowHalfOpen: true, noDelay: true }, (socket) => gateway.enter({ kind: 'proxy' }, socket));
}

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
