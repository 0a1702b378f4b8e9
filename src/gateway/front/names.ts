// gateway/front/names.ts: answers DNS queries of programs inside. Pure; no query ever leaves.
// Invariant: a name that may not be reached does not exist, one that may has an address without a meaning outside, and an
// answer is at most 16 bytes longer than its query.
import { isIPv4 } from 'node:net';
import { canonicalHost } from '../../protocol/host-name.ts';

export interface Names {
  /** null: no answer. */
  answer(packet: Buffer): Buffer | null;
  /** The name that has this synthetic address. */
  nameOf(address: string): string | undefined;
  /** null: the name may not be reached, or no address is left. */
  addressOf(host: string): string | null;
}

export function createNames(input: {
  /** Called for every query, because rules can change while the sandbox runs. */
  readonly allowed: (host: string) => boolean;
  /** Names of tcp grants and their IPv4 addresses inside. */
  readonly fixed: ReadonlyMap<string, string>;
  /** The first synthetic address; the others follow it. */
  readonly first: string;
}): Names {
  for (const [name, address] of input.fixed)
    if (!isIPv4(address)) throw new Error(`${name} cannot have the address ${address} inside.`);
  const taken = new Set(input.fixed.values());
  const addresses = new Map<string, string>();
  const names = new Map<string, string>();
  let last = numberOf(input.first) - 1;

  function give(host: string): string | null {
    const known = addresses.get(host);
    if (known !== undefined) return known;
    if (addresses.size >= MOST_NAMES) return null;
    do last++;
    while (taken.has(dotted(last)) || last % 256 === 0 || last % 256 === 255);
    const address = dotted(last);
    addresses.set(host, address);
    names.set(address, host);
    return address;
  }

  /** undefined: no such name. null: no address is left. */
  function find(host: string): string | null | undefined {
    // RFC 6761: localhost is loopback for every resolver.
    if (host === 'localhost' || host.endsWith('.localhost')) return '127.0.0.1';
    return input.fixed.get(host) ?? (input.allowed(host) ? give(host) : undefined);
  }

  return {
    answer(packet) {
      // An answer to an answer could loop forever.
      if (packet.length < HEADER || packet.length > MOST_BYTES || (packet[2] ?? 0) >= 0x80) return null;
      if (((packet[2] ?? 0) & 0x78) !== 0) return reply(packet, null, RCODE.notImplemented);
      const question = parseQuestion(packet);
      if (question === null) return reply(packet, null, RCODE.malformed);
      if (question.class !== CLASS_IN) return reply(packet, question, RCODE.refused);
      const found = question.host === null ? undefined : find(question.host);
      if (found === undefined) return reply(packet, question, RCODE.noSuchName);
      if (found === null) return reply(packet, question, RCODE.failed);
      return reply(packet, question, RCODE.done, question.type === TYPE_A ? found : null);
    },
    nameOf: (address) => names.get(address),
    addressOf: (host) => find(host) ?? null,
  };
}

interface Question {
  /** null: not a valid host name. */
  readonly host: string | null;
  readonly type: number;
  readonly class: number;
  /** The offset of its end in the packet. */
  readonly end: number;
}

/** Reads exactly one question and at most one EDNS record, with no byte after it; otherwise null. */
function parseQuestion(packet: Buffer): Question | null {
  const [questions, answers, authorities, additions] = [4, 6, 8, 10].map((at) => packet.readUInt16BE(at));
  if (questions !== 1 || answers !== 0 || authorities !== 0 || (additions ?? 2) > 1) return null;
  const labels: string[] = [];
  let at = HEADER;
  for (;;) {
    const length = packet[at];
    // From 64 on it is not a length but a pointer, and a question has nothing to point at.
    if (length === undefined || length > 63 || at + 1 + length > packet.length || at - HEADER > 254) return null;
    at++;
    if (length === 0) break;
    labels.push(packet.toString('latin1', at, at + length));
    at += length;
  }
  if (at + 4 > packet.length) return null;
  const end = at + 4;
  if (additions === 1 ? !isEdns(packet, end) : end !== packet.length) return null;
  return { host: hostOf(labels), type: packet.readUInt16BE(at), class: packet.readUInt16BE(at + 2), end };
}

// A dot inside a label would make one name look like another.
function hostOf(labels: readonly string[]): string | null {
  if (labels.some((label) => label.includes('.'))) return null;
  const name = canonicalHost(labels.join('.'));
  return name?.kind === 'name' ? name.host : null;
}

function isEdns(packet: Buffer, at: number): boolean {
  if (at + 11 > packet.length || packet[at] !== 0 || packet.readUInt16BE(at + 1) !== TYPE_OPT) return false;
  return at + 11 + packet.readUInt16BE(at + 9) === packet.length;
}

function reply(packet: Buffer, question: Question | null, rcode: number, address: string | null = null): Buffer {
  const end = question?.end ?? HEADER;
  const out = Buffer.alloc(end + (address === null ? 0 : 16));
  packet.copy(out, 0, 0, end);
  // An authoritative answer that repeats the opcode and "recursion desired".
  out[2] = 0x84 | ((packet[2] ?? 0) & 0x79);
  out[3] = 0x80 | rcode;
  out.writeUInt16BE(question === null ? 0 : 1, 4);
  out.writeUInt16BE(address === null ? 0 : 1, 6);
  out.writeUInt32BE(0, 8);
  if (address === null) return out;
  // A pointer to the name at byte 12.
  out.writeUInt16BE(0xc00c, end);
  out.writeUInt16BE(TYPE_A, end + 2);
  out.writeUInt16BE(CLASS_IN, end + 4);
  out.writeUInt32BE(TTL_SECONDS, end + 6);
  out.writeUInt16BE(4, end + 10);
  for (const [at, part] of address.split('.').entries()) out[end + 12 + at] = Number(part);
  return out;
}

function numberOf(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

function dotted(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff).join('.');
}

const HEADER = 12;
const MOST_BYTES = 1232;
const MOST_NAMES = 65_536;
const TYPE_A = 1;
const TYPE_OPT = 41;
const CLASS_IN = 1;
// Short, so that a rule change takes effect soon.
const TTL_SECONDS = 5;
const RCODE = { done: 0, malformed: 1, failed: 2, noSuchName: 3, notImplemented: 4, refused: 5 } as const;
