// gateway/dial/address.ts: may a name that a rule allows lead to this address?
// Invariant: only publicly routed addresses and blocks that the user granted may be dialled; an address that cannot be parsed
// completely may not. An IPv4 address embedded in an IPv6 one is judged as the IPv4 address.
import { isIPv4, isIPv6 } from 'node:net';

export interface Guard {
  /** Why not, as the rest of a sentence ("… leads to 127.0.0.1, which is loopback"), or null. */
  refuse(address: string): string | null;
}

export interface AddressBlock {
  readonly family: 4 | 6;
  readonly address: string;
  readonly prefix: number;
}

export function createGuard(input: {
  readonly granted: readonly string[];
  readonly ownAddresses: () => readonly string[];
  readonly now?: () => number;
}): Guard {
  const granted = input.granted.map((text) => grantedBlock(text));
  const now = input.now ?? (() => performance.now());
  const known = new Map<string, string | null>();
  let own = new Set<string>();
  let ownReadAt = -Infinity;

  // Listing the interfaces takes longer than all other steps here together.
  function refreshOwn(): void {
    const at = now();
    if (at - ownReadAt < 1000) return;
    ownReadAt = at;
    own = new Set(input.ownAddresses().map((address) => keyOf(wordsOf(withoutZone(address)))));
    known.clear();
  }

  function judge(words: Words): string | null {
    const inner = embedded(words);
    if (inner !== null && own.has(keyOf(words))) return 'an address of this machine';
    if (inner !== null) return inner.map((address) => judge([address])).find((reason) => reason !== null) ?? null;
    const grants = granted.filter((block) => contains(block, words));
    // Metadata addresses hand out the machine's own credentials, so a wide block that happens to cover one does not grant it.
    if (METADATA.has(keyOf(words))) return grants.some(isSingle) ? null : 'a cloud metadata address';
    if (grants.length > 0) return null;
    return classOf(words) ?? (own.has(keyOf(words)) ? 'an address of this machine' : null);
  }

  return {
    refuse(address) {
      refreshOwn();
      const before = known.get(address);
      if (before !== undefined) return before;
      const words = wordsOf(address);
      const reason = words === null ? 'not an address' : judge(words);
      if (known.size >= 4096) known.clear();
      known.set(address, reason);
      return reason;
    },
  };
}

/** Of an address as it was dialled. */
export function isLoopback(address: string): boolean {
  return /^(?:127\.\d+\.\d+\.\d+|::1)$/.test(address);
}

/** Reads `10.1.0.0/16`, `fd00:1::/32` or one address; a problem is a part of a sentence. */
export function parseBlock(text: string): AddressBlock | { readonly problem: string } {
  const [, address = '', digits] = /^([0-9A-Fa-f:.]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const words = wordsOf(address);
  if (words === null) return { problem: 'it is not a block of addresses such as 10.1.0.0/16' };
  const bits = words.length * 32;
  const prefix = digits === undefined ? bits : Number(digits);
  if (prefix > bits) return { problem: `/${prefix} is more than the ${bits} bits of an address` };
  if (words.some((word, at) => (word & ~mask(prefix, at)) !== 0))
    return { problem: `${address} has bits beyond its first ${prefix}` };
  if (embedded(words) !== null) return { problem: 'an IPv4 block is written as 10.1.0.0/16' };
  return { family: words.length === 4 ? 6 : 4, address, prefix };
}

/** One word of 32 bits for IPv4, four for IPv6. */
type Words = readonly number[];

interface Block {
  readonly words: Words;
  readonly prefix: number;
}

function grantedBlock(text: string): Block {
  const block = parseBlock(text);
  if ('problem' in block) throw new Error(`The granted addresses ${text} cannot be used: ${block.problem}.`);
  return { words: wordsOf(block.address) ?? [], prefix: block.prefix };
}

function isSingle(block: Block): boolean {
  return block.prefix === block.words.length * 32;
}

/** The IPv4 addresses embedded in an IPv6 address. */
function embedded(words: Words): readonly number[] | null {
  const [a = 0, b = 0, , d = 0] = words;
  if (contains(MAPPED, words)) return [d];
  if (contains(SIX_TO_FOUR, words)) return [((a << 16) | (b >>> 16)) >>> 0];
  // Teredo holds the server's address, and the client's with inverted bits.
  return contains(TEREDO, words) ? [b, ~d >>> 0] : null;
}

/** null: the address is public. */
function classOf(words: Words): string | null {
  const special = (words.length === 1 ? SPECIAL_V4 : SPECIAL_V6).find(([block]) => contains(block, words));
  if (special !== undefined) return special[1];
  return words.length === 1 || contains(GLOBAL_V6, words) ? null : 'reserved';
}

function contains(block: Block, words: Words): boolean {
  if (block.words.length !== words.length) return false;
  return block.words.every((word, at) => ((word ^ (words[at] ?? 0)) & mask(block.prefix, at)) === 0);
}

/** The bits of word `at` that a prefix covers. */
function mask(prefix: number, at: number): number {
  const bits = Math.min(32, Math.max(0, prefix - at * 32));
  return bits === 0 ? 0 : -1 << (32 - bits);
}

/** The address in network byte order; null: not an address. */
export function addressBytes(address: string): readonly number[] | null {
  return wordsOf(address)?.flatMap((word) => [24, 16, 8, 0].map((shift) => (word >>> shift) & 0xff)) ?? null;
}

function wordsOf(address: string): Words | null {
  if (isIPv4(address)) return [wordOfIPv4(address)];
  if (!isIPv6(address) || address.includes('%')) return null;
  const plain = address.replace(/[^:]*\.[^:]*$/, (last) => {
    const word = wordOfIPv4(last);
    return `${(word >>> 16).toString(16)}:${(word & 0xffff).toString(16)}`;
  });
  const [head = '', tail] = plain.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const groups = [...before, ...Array<string>(8 - before.length - after.length).fill('0'), ...after];
  const numbers = groups.map((group) => Number.parseInt(group, 16));
  return [0, 2, 4, 6].map((at) => (((numbers[at] ?? 0) << 16) | (numbers[at + 1] ?? 0)) >>> 0);
}

function wordOfIPv4(address: string): number {
  return address.split('.').reduce((word, part) => ((word << 8) | Number(part)) >>> 0, 0);
}

function withoutZone(address: string): string {
  return address.replace(/%.*$/, '');
}

function keyOf(words: Words | null): string {
  return words === null ? '' : words.join('.');
}

function block(text: string): Block {
  const [address = '', digits = ''] = text.split('/');
  return { words: wordsOf(address) ?? [], prefix: Number(digits) };
}

const MAPPED = block('::ffff:0:0/96');
const SIX_TO_FOUR = block('2002::/16');
const TEREDO = block('2001::/32');
const GLOBAL_V6 = block('2000::/3');

// Addresses where clouds hand out credentials; one of them looks public.
const METADATA: ReadonlySet<string> = new Set(
  [
    '169.254.169.254',
    '169.254.170.2',
    '169.254.170.23',
    '100.100.100.200',
    '192.0.0.192',
    '168.63.129.16',
    'fd00:ec2::254',
    'fd00:ec2::23',
    'fd20:ce::254',
    'fd00:c1::a9fe:a9fe',
  ].map((address) => keyOf(wordsOf(address))),
);

// IANA's registries of special-purpose addresses, and multicast. Documentation addresses are not listed: no private machines use
// them, but test networks do.
const SPECIAL_V4: readonly (readonly [Block, string])[] = (
  [
    ['0.0.0.0/8', 'an address of this machine'],
    ['10.0.0.0/8', 'a private address'],
    ['100.64.0.0/10', 'an address inside the network of a provider'],
    ['127.0.0.0/8', 'loopback'],
    ['169.254.0.0/16', 'link-local'],
    ['172.16.0.0/12', 'a private address'],
    ['192.0.0.0/24', 'reserved'],
    ['192.31.196.0/24', 'reserved'],
    ['192.52.193.0/24', 'reserved'],
    ['192.88.99.0/24', 'reserved'],
    ['192.168.0.0/16', 'a private address'],
    ['192.175.48.0/24', 'reserved'],
    ['198.18.0.0/15', 'an address for tests of networks'],
    ['224.0.0.0/4', 'multicast'],
    ['255.255.255.255/32', 'broadcast'],
    ['240.0.0.0/4', 'reserved'],
  ] as const
).map(([text, why]) => [block(text), why] as const);

const SPECIAL_V6: readonly (readonly [Block, string])[] = (
  [
    ['::/128', 'an address of this machine'],
    ['::1/128', 'loopback'],
    ['64:ff9b::/96', 'an address that stands for an IPv4 one'],
    ['64:ff9b:1::/48', 'an address inside the network of a provider'],
    ['100::/64', 'reserved'],
    ['2001::/23', 'reserved'],
    ['5f00::/16', 'reserved'],
    ['fc00::/7', 'a private address'],
    ['fe80::/10', 'link-local'],
    ['fec0::/10', 'a private address'],
    ['ff00::/8', 'multicast'],
  ] as const
).map(([text, why]) => [block(text), why] as const);
