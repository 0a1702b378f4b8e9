// gateway/dial/resolve.ts: which addresses does a name lead to?
// Invariant: one query at a time for a name, a bounded cache, and a dead server delays no other name.
// dns.lookup is never used: it has four threads for the whole process, and dead names occupy them for seconds.
import { Resolver as Channel } from 'node:dns';
import { statSync } from 'node:fs';
import { setTimeout as startTimer } from 'node:timers';
import { setTimeout } from 'node:timers/promises';
import { createHostsFile } from './hosts-file.ts';

export type Resolved =
  /** IPv4 first. */
  | { readonly kind: 'found'; readonly addresses: readonly string[] }
  /** `reason` is a sentence: "no.test does not exist". */
  | { readonly kind: 'failed'; readonly reason: string; readonly timedOut: boolean };

export interface Resolver {
  /** `exact`: a rule names the host in full, so a query for it cannot carry data out. Other names are limited in rate. */
  resolve(host: string, options?: { readonly exact?: boolean }): Promise<Resolved>;
  close(): void;
}

export function createResolver(input: {
  /** "127.0.0.1:53"; empty: the servers of this machine. */
  readonly servers: readonly string[];
  readonly hostsFile?: string;
  /** Timeout of the first try; it doubles with each further try. */
  readonly timeoutMs?: number;
  readonly tries?: number;
  /** Queries in a second for names that no rule names in full: such a name can carry data out. */
  readonly perSecond?: number;
  readonly now?: () => number;
}): Resolver {
  const { timeoutMs = 2000, tries = 2, perSecond = 20, now = () => performance.now() } = input;
  const hosts = createHostsFile({ path: input.hostsFile ?? '/etc/hosts', now });
  const channels = createChannels({ servers: input.servers, timeoutMs, tries, now });
  const withinBudget = createBudget(perSecond, now);
  const known = new Map<string, Known>();
  const underWay = new Map<string, Promise<Resolved>>();
  // c-ares has its own timeouts; this deadline covers time that it does not count.
  const deadlineMs = timeoutMs * (2 ** tries - 1) + 500;

  function remember(host: string, four: Answer, six: Answer): Known {
    const resolved = conclude(host, four, six);
    const lasting = isAbsent(four) && isAbsent(six) ? ABSENT_SECONDS : TRANSIENT_SECONDS;
    const seconds = resolved.kind === 'found' ? Math.min(four.seconds, six.seconds) : lasting;
    const entry = { resolved, until: now() + Math.min(Math.max(seconds, 1), MOST_SECONDS) * 1000 };
    known.delete(host);
    if (known.size >= MOST_KNOWN) known.delete(known.keys().next().value ?? '');
    known.set(host, entry);
    return entry;
  }

  async function ask(host: string): Promise<Resolved> {
    const channel = channels.current();
    const asked = query(channel, 'resolve6', host, deadlineMs);
    const four = await query(channel, 'resolve4', host, deadlineMs);
    // RFC 8305: once IPv4 has answered, wait only a moment for IPv6.
    const six = four.addresses.length === 0 ? await asked : await Promise.race([asked, patience()]);
    if (six !== null) return remember(host, four, six).resolved;
    const entry = remember(host, four, NOTHING);
    // A late IPv6 answer is cached for the next query.
    void asked.then((late) => {
      entry.resolved = conclude(host, four, late);
    });
    return entry.resolved;
  }

  return {
    resolve(host, options) {
      const local = hosts.lookup(host);
      if (local.length > 0) return Promise.resolve({ kind: 'found', addresses: local });
      // Search domains would turn such a name into another one.
      if (!host.includes('.'))
        return fail(`${host} is not in the hosts file, and a name without a dot is not looked up`);
      const entry = known.get(host);
      if (entry !== undefined && entry.until > now()) return Promise.resolve(entry.resolved);
      const before = underWay.get(host);
      if (before !== undefined) return before;
      if (underWay.size >= MOST_UNDER_WAY) return fail(`${host} cannot be looked up: too many lookups at one time`);
      if (options?.exact !== true && !withinBudget())
        return fail(`${host} was not looked up: more than ${perSecond} new names in a second`);
      const promise = ask(host).finally(() => underWay.delete(host));
      underWay.set(host, promise);
      return promise;
    },
    close: () => channels.close(),
  };
}

interface Known {
  resolved: Resolved;
  readonly until: number;
}

interface Answer {
  readonly addresses: readonly string[];
  readonly seconds: number;
  /** The DNS error code if there are no addresses. */
  readonly code: string;
}

function query(channel: Channel, kind: 'resolve4' | 'resolve6', host: string, deadlineMs: number): Promise<Answer> {
  return new Promise((resolve) => {
    const deadline = startTimer(() => resolve({ ...NOTHING, code: 'ETIMEOUT' }), deadlineMs);
    channel[kind](host, { ttl: true }, (error, records) => {
      clearTimeout(deadline);
      if (error !== null) return resolve({ ...NOTHING, code: error.code ?? '' });
      const some = records.slice(0, MOST_ADDRESSES);
      resolve({
        addresses: some.map((record) => record.address),
        seconds: Math.min(...some.map((record) => record.ttl)),
        code: some.length === 0 ? 'ENODATA' : '',
      });
    });
  });
}

function conclude(host: string, four: Answer, six: Answer): Resolved {
  const addresses = [...four.addresses, ...six.addresses];
  if (addresses.length > 0) return { kind: 'found', addresses };
  const codes = [four.code, six.code];
  if (isAbsent(four) && isAbsent(six)) {
    const reason = codes.includes('ENOTFOUND') ? `${host} does not exist` : `${host} has no address`;
    return { kind: 'failed', reason, timedOut: false };
  }
  if (codes.includes('ETIMEOUT'))
    return { kind: 'failed', reason: `no name server told where ${host} is in time`, timedOut: true };
  const { code } = isAbsent(four) ? six : four;
  return { kind: 'failed', reason: `no name server could tell where ${host} is (${code})`, timedOut: false };
}

// The open query keeps the process alive; this timer alone does not.
function patience(): Promise<null> {
  return setTimeout(PATIENCE_MS, null, { ref: false });
}

/** A server confirmed that there is no address, as opposed to a failed query. */
function isAbsent(answer: Answer): boolean {
  return answer.code === 'ENODATA' || answer.code === 'ENOTFOUND';
}

function fail(reason: string): Promise<Resolved> {
  return Promise.resolve({ kind: 'failed', reason, timedOut: false });
}

/** A laptop changes networks while a sandbox runs: without configured servers, follow the machine's resolv.conf. */
function createChannels(input: {
  readonly servers: readonly string[];
  readonly timeoutMs: number;
  readonly tries: number;
  readonly now: () => number;
}): { current(): Channel; close(): void } {
  // c-ares cannot change servers while queries are open, so this opens a new channel, which reads resolv.conf itself.
  const open = (): Channel => {
    const channel = new Channel({ timeout: input.timeoutMs, tries: input.tries });
    if (input.servers.length > 0) channel.setServers(input.servers);
    return channel;
  };
  let channel = open();
  let version = resolvConfVersion();
  let checkedAt = input.now();
  return {
    current() {
      if (input.servers.length > 0 || input.now() - checkedAt < 5000) return channel;
      checkedAt = input.now();
      const current = resolvConfVersion();
      if (current !== version) channel = open();
      version = current;
      return channel;
    },
    close: () => channel.cancel(),
  };
}

function resolvConfVersion(): string {
  const stat = statSync('/etc/resolv.conf', { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? '' : `${stat.dev},${stat.ino},${stat.size},${stat.mtimeNs}`;
}

/** Takes one query from the budget; false: the budget is spent. */
function createBudget(perSecond: number, now: () => number): () => boolean {
  let left = perSecond;
  let countedAt = now();
  return () => {
    const at = now();
    left = Math.min(perSecond, left + ((at - countedAt) * perSecond) / 1000);
    countedAt = at;
    if (left < 1) return false;
    left--;
    return true;
  };
}

const NOTHING: Answer = { addresses: [], seconds: Infinity, code: 'ENODATA' };
const PATIENCE_MS = 50;
const MOST_SECONDS = 300;
const ABSENT_SECONDS = 5;
const TRANSIENT_SECONDS = 1;
const MOST_KNOWN = 10_000;
const MOST_UNDER_WAY = 512;
const MOST_ADDRESSES = 16;
