// test/attacks/mutation/gateway-protections.test.ts: the table of gateway mutants is complete: every refusal and every bound in the source is
// in gateway-mutants.ts, or is listed here with the test that proves it.
import { basename, dirname } from 'node:path';
import { expect, test } from 'vitest';
import { MUTANTS } from './gateway-mutants.ts';
import { pathIn, SOURCE } from './mutated-source.ts';
import { goneNames, missingProofs, placesIn, staleIn, unknownIn, type Watched } from './protections.ts';

/** Every file of the gateway. */
const FOLDER = dirname(pathIn(() => import('../../../src/gateway/gateway.ts')));
const FILES = SOURCE.files.filter((path) => path.startsWith(`${FOLDER}/`));

/** Files that no program inside can reach, or that decide nothing, with their tests. */
const FILES_ELSEWHERE: Readonly<Record<string, string>> = {
  'admin.ts': 'for users who run a gateway on its own; test/network/gateway-command.test.ts',
  'answers.ts': 'words',
  'certificate.ts': 'test/gateway/certificate.full.test.ts',
  'forward.ts': 'decides nothing; test/network/gateway-serve.test.ts',
  'hosts-file.ts': 'a file of this machine; test/gateway/resolve.test.ts',
  'own-buffer.ts': 'speed; test/gateway/own-buffer.test.ts',
  'post.ts': 'requests of our own, not those of a sandbox',
  'race.ts': 'test/gateway/dial.test.ts',
  'upstream.ts': 'what a proxy may say: test/gateway/upstream.test.ts',
  'values.ts': 'what the user keeps: test/gateway/values.test.ts',
  'way-out.ts': 'requests of our own, not those of a sandbox',
};

/** Lines by how they begin: the test that misses them, or why none can. */
const NOT_HERE: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'address.ts': {
    'if (words === null) return { problem:': 'what the user writes: test/gateway/address.test.ts',
    'if (prefix > bits) return': 'what the user writes: test/gateway/address.test.ts',
    'return { problem: `${address} has bits': 'what the user writes: test/gateway/address.test.ts',
    'if (embedded(words) !== null) return { problem:': 'what the user writes: test/gateway/address.test.ts',
  },
  'body.ts': { "return 'data is not framing'": 'cannot be reached' },
  'client-hello.ts': {
    'const notTls =': 'the words of those above',
    'const tooLong =': 'the words of those above',
    'if (at + width > message.length)': 'without it the gateway would stop: test/gateway/client-hello.test.ts',
    'if (at > message.length)': 'without it the gateway would stop: test/gateway/client-hello.test.ts',
    'if (at + 4 > bytes.length)': 'without it the gateway would stop: test/gateway/client-hello.test.ts',
    'if (serverName === null) return': 'the words of what parseServerName refuses',
  },
  'dial.ts': {
    'const MOST_ADDRESSES': 'how many addresses of an allowed host are tried',
    'const MOST_THROUGH_PROXY': 'how many addresses a proxy is asked for',
  },
  'name-listeners.ts': {
    "return refuse(connection, 404, 'no endpoint has this name": 'taken out with the line that finds the endpoint',
    'if (target === null) return refuse': 'a host that the user wrote is one',
  },
  'front.ts': {
    'return () => refuse(connection, result.status': 'the words of those in request-head.ts',
    'if (place === null || place.port === null)': 'there is nowhere to go without a place',
    "return refuse(visit, 400, 'this is a proxy": 'there is nowhere to go without a place',
  },
  'gateway.ts': {
    'const CONNECT_MS': 'how long an allowed host is waited for: test/gateway/dial.test.ts',
    'const FIRST_WORDS_MS': 'given by limit-silence',
    'const NAMES_NOTED_MS': 'what is written down: test/attacks/gateway-ways.test.ts',
  },
  'head.ts': {
    'if (at === 1) return bad':
      'an empty first line is no request and no answer either: test/gateway/request-head.test.ts',
    'export function bad(': 'words',
  },
  'intercept.ts': {
    'const HEAD_MS': 'given by limit-idle',
    'const HALF_CLOSED_MS': 'how long a half-closed client may read',
    "if (typeof model === 'string')": 'test/gateway/model-meter.test.ts',
    'if (refusal !== null) return await refuse': 'test/gateway/model-meter.test.ts',
    'const outcome = await refuse(client, null': 'the words of those in request-head.ts',
    'if (upload.problem !== null) return refuse': 'the words of those in body.ts',
    "if (chunk === null) return 'client gone'": 'the client is gone',
  },
  'limits.ts': { "? refuse('bytesOut'": 'taken out where it is asked for' },
  'answer-usage.ts': {
    'const MOST_HELD': 'test/gateway/model-meter.test.ts',
    'const MOST_PIECES': 'test/gateway/model-meter.test.ts',
    'const MOST_PARTS': 'test/gateway/model-meter.test.ts',
    'const MOST_NAME': 'test/gateway/model-meter.test.ts',
    'const MOST_TOKENS': 'test/gateway/model-meter.test.ts',
  },
  'model-meter.ts': {
    'if (unseen && account.strict)': 'test/gateway/model-meter.test.ts',
    'const MOST_NOTED': 'test/gateway/model-meter.test.ts',
    'const MOST_ERROR': 'test/gateway/model-meter.test.ts',
  },
  'retry-after.ts': { 'const MOST_SECONDS': 'test/gateway/model-meter.test.ts' },
  'names.ts': {
    'const TTL_SECONDS': 'how soon a rule is felt',
  },
  'relay.ts': {
    'const HALF_CLOSED_MS': 'test/gateway/relay.test.ts',
    'const FAREWELL_MS': 'how long an allowed host may take its last bytes',
  },
  'request-head.ts': {
    'if (!isTokenByte(bytes[0] ?? 0))': 'sooner than by the first line: test/gateway/request-head.test.ts',
    'if (line === null) return bad': 'there is nothing to go on with',
    "return bad('its target is too long'": 'the words of the bound above',
  },
  'request-target.ts': {
    'const elsewhere: Target': 'words',
    "if (target.kind === 'refused') return say": 'the words of those above',
    'return elsewhere;': 'the words of the condition above',
    'if (inside === null) return': 'taken out with what finds the base path',
  },
  'resolve.ts': {
    "return { kind: 'failed', reason: `no name server": 'there is no address',
    'const PATIENCE_MS': 'speed',
    'const MOST_SECONDS': 'how long an answer counts: test/gateway/resolve.test.ts',
    'const ABSENT_SECONDS': 'how long an answer counts: test/gateway/resolve.test.ts',
    'const TRANSIENT_SECONDS': 'how long an answer counts: test/gateway/resolve.test.ts',
    'const MOST_KNOWN': 'test/gateway/resolve.test.ts',
    'const MOST_ADDRESSES': 'how many addresses of an allowed host are kept',
  },
  'response-head.ts': { 'if (line === null) return bad': 'there is nothing to go on with' },
  'response-relay.ts': {
    "if (result.kind === 'bad') return": 'the words of those in response-head.ts',
    'if (!relay.count(head.bytes)) return': 'what comes in has no limit',
  },
  'authorize.ts': {
    'const ASKED_MS': 'what is written down',
    'const REFUSED_MS': 'what is written down',
  },
  'rules.ts': {
    "return { kind: 'denied', reason: `no rule covers ${method}": 'taken out with what a rule speaks of',
    "return { kind: 'denied', reason: `denied by": 'taken out where it is asked for',
  },
  'secure-ends.ts': {
    'const HANDSHAKE_MS': 'how long an allowed host is waited for',
    "return { kind: 'refused', status: 502": 'words of what handshake finds',
    "if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')": 'words',
  },
  'connection.ts': {
    'const IN_HAND_MS': 'what is written down',
  },
  'web-socket.ts': { 'const LINGER_MS': 'after everything was said' },
};

const REFUSING = ['bad', 'refuse', 'refused', 'say', 'fail', 'drop'];
const REFUSALS = ['notTls', 'tooLong', 'elsewhere', 'cut'];
const REFUSES = [
  new RegExp(`\\b(?:${REFUSING.join('|')})\\(.*['\`]`),
  /\b(?:problem|reason): ['`]/,
  /return (?:.*\? )?'[^']* [^']*'/,
  new RegExp(`\\b(?:${REFUSALS.join('|')});`),
];
const BOUND = /^(?:export )?const ((?:MAX|MOST)_\w+|\w+_MS|\w+_SECONDS) = /;

const WATCHED: Watched = {
  files: FILES.filter((path) => FILES_ELSEWHERE[basename(path)] === undefined),
  pieces: MUTANTS.flatMap(({ pieces }) => pieces),
  like: [BOUND, ...REFUSES],
  names: [...REFUSING, ...REFUSALS, 'problem', 'reason'],
  notHere: Object.fromEntries(Object.entries(NOT_HERE).map(([file, lines]) => [`gateway/${file}`, lines])),
};

test('every refusal and every bound in the source of the gateway is removed by a mutant or listed', () => {
  expect(placesIn(WATCHED).filter(({ removed }) => removed).length).toBeGreaterThan(60);
  expect(unknownIn(WATCHED)).toEqual([]);
  expect(goneNames(WATCHED)).toEqual([]);
});

test('every listed line exists, and so does the test that proves it', () => {
  const reasons = [...Object.values(FILES_ELSEWHERE), ...Object.values(NOT_HERE).flatMap((one) => Object.values(one))];
  expect(missingProofs(reasons)).toEqual([]);
  expect(staleIn(WATCHED)).toEqual([]);
  const there = FILES.map((path) => basename(path));
  expect(Object.keys(FILES_ELSEWHERE).filter((file) => !there.includes(file))).toEqual([]);
});
