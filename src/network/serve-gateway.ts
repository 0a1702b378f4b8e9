// network/serve-gateway.ts: a standalone gateway for containers and clusters: the same rules, listeners and log, at addresses
// from a file or the command line.
// Invariants: it listens beyond this machine only with a token; changed files take effect all together or not at all, and open
// connections stay open.
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type Server } from 'node:net';
import { basename } from 'node:path';
import { existsSync, renameSync, statSync } from 'node:fs';
import { AgsError } from '../protocol/errors.ts';
import type { NetworkRule, ValueSource, Decision } from '../protocol/network.ts';
import { readAllowList } from '../config/network/allow-list.ts';
import { expandRules } from '../config/network/presets.ts';
import { watchFiles } from '../lib/stream/watch-files.ts';
import { serveAdmin } from '../gateway/admin.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { readValue } from '../gateway/values.ts';
import { assembleGateway } from '../run/network/open-gateway.ts';
import { listenAt } from './listen.ts';
import { prepareSecrets } from '../run/network/secrets.ts';
import type { HostContext } from '../run/host-context.ts';
import type { EffectiveConfig } from '../config/effective.ts';
import { mergeLayers, type MergeContext } from '../config/merge.ts';
import { parseLayer } from '../config/file/parse.ts';
import { readLayerFile, type LayerFile } from '../config/file/read.ts';
import { openNetworkLog, type NetworkLog } from '../store/network-log.ts';

export interface ServeInput {
  /** A file with the keys of ags.yaml. */
  readonly config: string | null;
  /** Files with a host on each line. */
  readonly lists: readonly string[];
  /** A Unix socket to listen at, in addition to those in `config`. */
  readonly socket: string | null;
  readonly log: string | null;
}

export interface ServedGateway {
  readonly places: readonly string[];
  /** Reads the files again; throws, and changes nothing, if one is invalid. Also runs when a file changes. */
  reload(): void;
  close(): void;
}

export async function serveGateway(
  context: HostContext,
  input: ServeInput,
  notice: (text: string) => void,
): Promise<ServedGateway> {
  const files = [...(input.config === null ? [] : [input.config]), ...input.lists];
  const watch = watchFiles(files);
  const { file, rules, listen, admin } = readFiles(context, input);
  const { config } = file;
  if (file.token === null) for (const place of listen) if (!isLocal(place)) throw needsToken(place);
  const token = file.token === null ? null : await readValue(file.token, context);
  const startedMs = context.now().getTime();
  const logFile = input.log ?? file.log;
  const log = logFile === null ? null : openRotatingLog(logFile, files[0] ?? '', context.now);
  const secrets = await prepareSecrets(config.network, config.secrets, context.now);
  const gateway = await assembleGateway(context, secrets, {
    run: 'gateway',
    policy: config.network,
    rules,
    grantAddresses: new Map(),
    log: (decision) => log?.append(decision),
    onLimit: ({ first, reason }) => void (first && notice(`Network: ${reason}.`)),
    onAsk: ({ host, port }) => notice(`Network: a client asks for ${host}:${port}.`),
    who: null,
    isToken: token === null ? null : sameAs(token),
    // `ags allow` has no effect on a standalone gateway.
    remedy: (host) => `with a line in ${basename(input.lists[0] ?? input.config ?? '')}: ${host}`,
  });
  const open: Disposable[] = [];
  const close = (): void => {
    for (const one of open.toReversed()) one[Symbol.dispose]();
    gateway.close();
    log?.close();
  };
  try {
    for (const place of listen) open.push(await listenAt(place, proxyServer(gateway)));
    if (admin !== null) open.push(await listenAt(admin, serveAdmin(gateway, startedMs, Date.now)));
  } catch (error) {
    close();
    throw error;
  }
  const reload = (): void => gateway.setRules(readFiles(context, input).rules);
  open.push(watch.start(() => tellReload(reload, notice)));
  return { places: listen, reload, close };
}

/** An invalid file changes nothing and is reported. */
export function tellReload(reload: () => void, notice: (text: string) => void): void {
  try {
    reload();
    notice('Rules reloaded.');
  } catch (error) {
    if (!(error instanceof AgsError)) throw error;
    notice(`${error.message} The rules are unchanged.`);
  }
}

interface Files {
  readonly file: GatewayFile;
  readonly rules: readonly NetworkRule[];
  readonly listen: readonly string[];
  readonly admin: string | null;
}

function readFiles(context: HostContext, input: ServeInput): Files {
  const file = readGatewayFile(input.config, {
    ...context,
    userConfigFile: input.config ?? '',
    projectDir: context.cwd,
    memoryTotalBytes: context.memoryBytes,
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

/** The admin socket beside this socket: a health check there leaves no line in the log. */
export function adminSocket(socket: string): string {
  return `${socket}.admin`;
}

function proxyServer(gateway: Gateway): Server {
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

export interface GatewayFile {
  readonly config: EffectiveConfig;
  readonly listen: readonly string[];
  readonly admin: string | null;
  readonly log: string | null;
  readonly token: ValueSource | null;
}

/** Without a file nothing is allowed; even the built-in lists are off. */
function readGatewayFile(path: string | null, context: MergeContext): GatewayFile {
  const file = path === null ? EMPTY : readLayerFile({ kind: 'user', path, label: path });
  if (file === undefined)
    throw new AgsError('config.invalid', `${path} does not exist.`, { hint: 'See: ags help gateway' });
  const layer = parseLayer(file);
  const { listen = [], admin, log, tokenFile } = layer.values.gateway ?? {};
  return {
    config: mergeLayers([layer], context, path === null ? [] : [path]),
    listen,
    admin: admin ?? null,
    log: log ?? null,
    token: tokenFile === undefined ? null : { file: tokenFile },
  };
}

const EMPTY: LayerFile = { kind: 'user', path: '', label: '', bytes: Buffer.from('network: { defaults: false }') };

// A rotated file is never changed or lost; each is a hash chain of its own from its first line to its last.

/** About 50 MB; a single log takes at most 64 MB. */
const MOST_LINES = 150_000;

function openRotatingLog(file: string, project: string, now: () => Date): Pick<NetworkLog, 'append' | 'close'> {
  let lines = 0;
  let log = begin();
  function begin(): NetworkLog {
    setAside(file);
    lines = 0;
    return openNetworkLog(file, { task: 'gateway', project, startedAt: now().toISOString() });
  }
  return {
    append(decision: Decision) {
      if (++lines > MOST_LINES) {
        log.close();
        log = begin();
      }
      log.append(decision);
    },
    close: () => log.close(),
  };
}

function setAside(file: string): void {
  if (!existsSync(file)) return;
  const stamp = statSync(file)
    .mtime.toISOString()
    .replaceAll(/[-:]|\.\d+/g, '');
  let to = `${file}.${stamp}`;
  for (let n = 1; existsSync(to); n++) to = `${file}.${stamp}-${n}`;
  renameSync(file, to);
}
