// test/attacks/mutation/gateway-mutants.ts: every protection in the source of the gateway: each row removes one, and names the attempt
// that then succeeds. If one backs another up, the row removes both.
import { SOURCE, type Piece } from './mutated-source.ts';

export interface Mutant {
  readonly name: string;
  /** In the shared table, or in gateway-limits.ts. */
  readonly by: string;
  readonly pieces: readonly Piece[];
}

const of = (file: string, ...edits: readonly (readonly [from: string, to: string])[]): Piece[] =>
  edits.map(([from, to]) => [`gateway/${file}`, from, to]);
const one = (name: string, by: string, file: string, from: string, to = ''): Mutant => ({
  name,
  by,
  pieces: of(file, [from, to]),
});
const all = (name: string, by: string, ...edits: readonly Piece[][]): Mutant => ({ name, by, pieces: edits.flat() });

// One row for each mutant, as a table.
// oxfmt-ignore
const BY_HAND: readonly Mutant[] = [
  // Rules.
  one('no rule, no connection', 'net-unknown-host', 'rules.ts', "if (rule === undefined) return { kind: 'denied', reason: noRule(rules, host, port), unknown: true };", "if (rule === undefined) return { kind: 'allowed', rule: { action: 'allow', host, port, methods: null, path: null, origin: '' }, inspect: false };"),
  one('a rule is for one port', 'net-other-ports', 'rules.ts', "const allowing = rules.filter((rule) => rule.action === 'allow' && rule.port === port);", "const allowing = rules.filter((rule) => rule.action === 'allow');"),
  one('a rule is for one host', 'net-look-alike-hosts', 'rules.ts', 'let found: readonly NetworkRule[] = byHost.get(host) ?? [];', "let found: readonly NetworkRule[] = list.filter((rule) => host.endsWith(rule.host.replace('*.', '')));"),
  one('a deny beats every allow', 'net-narrow-rules', 'rules.ts', 'const denying = rules.find((rule) => deniesAll(rule) && deniesPort(rule, port));', 'const denying = undefined as NetworkRule | undefined;'),
  one('a deny of a path beats every allow', 'net-narrow-rules', 'rules.ts', "(rule) => rule.action === 'deny' && deniesPort(rule, port) && speaksOf(rule, method, path),", '() => false,'),
  one('a deny means every port', 'net-narrow-rules', 'rules.ts', 'return rule.port === 443 || rule.port === port;', 'return rule.port === port;'),
  one('a deny of some requests inspects the host', 'net-narrow-rules', 'rules.ts', 'inspect: whole === undefined || partlyDenied', 'inspect: whole === undefined'),
  one('a narrow rule inspects the host', 'net-narrow-rules', 'rules.ts', 'inspect: whole === undefined || partlyDenied', 'inspect: partlyDenied && whole !== undefined'),
  one('a rule is for its methods', 'net-narrow-rules', 'rules.ts', '(rule.methods === null || rule.methods.includes(method)) &&', ''),
  one('a rule is for its paths', 'net-narrow-rules', 'rules.ts', '(rule.path === null || covers(rule.path, path))', "(rule.path === null || rule.action === 'allow' || covers(rule.path, path))"),
  // Lookups of names.
  one('an allowed name leads to public addresses', 'dns-to-loop', 'address.ts', 'const reason = words === null ? … : judge(words);', 'const reason = words === null ? judge([]) : null;'),
  one('addresses for special purposes', 'dns-to-lan', 'address.ts', 'if (special !== undefined) return special[1];', 'if (special?.length === 3) return special[1];'),
  one('IPv6 addresses outside the routed block', 'dns-to-special6', 'address.ts', "contains(GLOBAL_V6, words) ? null : 'reserved'", "contains(GLOBAL_V6, words) ? null : null"),
  one('IPv4 mapped into IPv6', 'dns-to-mapped', 'address.ts', 'const inner = embedded(words);', 'const inner = embedded(words) === null ? null : [];'),
  one('IPv4 behind a relay', 'dns-to-sixtofour', 'address.ts', 'if (contains(SIX_TO_FOUR, words)) return [((a << 16) | (b >>> 16)) >>> 0];'),
  all('IPv4 behind a tunnel', 'dns-to-teredo', of('address.ts', ['return contains(TEREDO, words) ? [b, ~d >>> 0] : null;', 'return null;'], ["    ['2001::/23', 'reserved'],\n", ''])),
  one('a wide block does not open cloud metadata', 'dns-to-cloud', 'address.ts', 'if (METADATA.has(keyOf(words))) return grants.some(isSingle) ? null : …;'),
  one('addresses of this machine', 'dns-to-own', 'address.ts', '?? (own.has(keyOf(words)) ? … : null)', '?? null'),
  one('addresses of this machine mapped into IPv6', 'dns-to-own', 'address.ts', 'if (inner !== null && own.has(keyOf(words))) return …;'),
  one('every address is checked', 'dns-to-loop', 'dial.ts', 'judged.filter(({ why }) => why === null)', 'judged.filter(() => true)'),
  one('only checked addresses are dialled', 'dns-to-mixed', 'dial.ts', 'return good.length > 0 ? inTurns(good) : forbidden', 'return good.length > 0 ? resolved.addresses : forbidden'),
  all('a name is looked up once', 'dns-to-rebind', of('dial.ts', ['const raced = await race(addresses, (address) => open(address, target.port), input.connectTimeoutMs, client);', "const later = await input.resolver.resolve(target.host); const raced = await race('addresses' in later ? later.addresses : addresses, (address) => open(address, target.port), input.connectTimeoutMs, client);"]), of('resolve.ts', ['if (entry !== undefined && entry.until > now()) return', 'if (entry !== undefined && entry.until < 0) return'])),
  one('addresses are checked before a proxy gets them', 'dns-to-proxied-lan', 'dial.ts', "upstream.resolve === 'there' && target.kind === 'name'", "target.kind === 'name'"),
  one('new names in a second', 'dns-flood', 'resolve.ts', 'if (options?.exact !== true && !withinBudget())', 'if (options?.exact !== true && perSecond < 0 && !withinBudget())'),
  one('a name without a dot is not looked up', 'dns-bare-name', 'resolve.ts', "if (!host.includes('.'))", 'if (host === "")'),
  // The name service inside.
  one('names that may not be reached do not exist', 'dns-unknown-names', 'names.ts', '(input.allowed(host) ? give(host) : undefined)', 'give(host)'),
  one('one question', 'dns-malformed', 'names.ts', 'if (questions !== 1 || answers !== 0 ||', 'if (answers !== 0 ||'),
  one('nothing but a question', 'dns-malformed', 'names.ts', 'if (questions !== 1 || answers !== 0 ||', 'if (questions !== 1 ||'),
  one('no byte after the question', 'dns-malformed', 'names.ts', 'if (additions === 1 ? !isEdns(packet, end) : end !== packet.length) return null;', 'if (additions === 1 && !isEdns(packet, end)) return null;'),
  one('only EDNS is added', 'dns-malformed', 'names.ts', 'if (additions === 1 ? !isEdns(packet, end) : end !== packet.length) return null;', 'if (additions !== 1 && end !== packet.length) return null;'),
  one('one class', 'dns-malformed', 'names.ts', 'if (question.class !== CLASS_IN) return reply(packet, question, RCODE.refused);'),
  one('an answer is not answered', 'dns-malformed', 'names.ts', '|| (packet[2] ?? 0) >= 0x80) return null;', ') return null;'),
  one('one kind of question', 'dns-malformed', 'names.ts', 'if (((packet[2] ?? 0) & 0x78) !== 0) return reply(packet, null, RCODE.notImplemented);'),
  one('no dot within a label', 'dns-malformed', 'names.ts', "if (labels.some((label) => label.includes('.'))) return null;"),
  // Names of hosts.
  { name: 'names are of plain signs', by: 'net-odd-hosts', pieces: [['protocol/host-name.ts', '!labels.every((label) => LABEL.test(label)) ||', 'labels.length + LABEL.source.length === 0 ||']] },
  { name: 'capitals mean nothing', by: 'net-narrow-rules', pieces: [['protocol/host-name.ts', 'const host = (text.endsWith(\'.\') ? text.slice(0, -1) : text).toLowerCase();', 'const host = text.endsWith(\'.\') ? text.slice(0, -1) : text;'], ['protocol/host-name.ts', 'const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;', 'const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/i;']] },
  // Listeners.
  one('an address that stands for no name leads nowhere', 'net-web-door', 'name-listeners.ts', "names.nameOf(visit.socket.localAddress ?? '') ?? null", "names.nameOf(visit.socket.localAddress ?? '') ?? 'tunnel.ags-attack.test'"),
  all('the Host is the name behind the address', 'net-web-door', of('name-listeners.ts', ['if (named?.name.host !== host || (named.port ?? 80) !== 80)', 'if (host === "")']), of('request-target.ts', ["if (place.basePath === '' && !isPlace(host, place)) return elsewhere;", ''])),
  one('every request in a tunnel to port 80 is for its host', 'net-web-door', 'request-target.ts', "if (place.basePath === '' && !isPlace(host, place)) return elsewhere;"),
  one('a tunnel to port 80 is inspected', 'net-web-door', 'carry.ts', 'if (port === 80) {', 'if (port === -1) {'),
  one('a target is for the host of its connection', 'net-web-door', 'request-target.ts', "(place.basePath !== '' || absolute[1]?.toLowerCase() !== place.upstream || !isPlace(absolute[2] ?? '', place))", 'false'),
  all('the Host is that of the URL', 'net-two-hosts', of('front.ts', ['if (!agrees(head, place.name.host, port)) return refuse(visit, 400, …);', '']), of('request-target.ts', ["if (place.basePath === '' && !isPlace(host, place)) return elsewhere;", ''])),
  one('a target is a path', 'net-web-door', 'request-target.ts', "if (!local.startsWith('/')) return refused(…);"),
  one('the Host is that of the CONNECT', 'net-two-hosts', 'front.ts', 'if (!agrees(head, place.name.host, place.port)) return refuse(visit, 400, …);'),
  one('port 443 is for TLS', 'net-not-tls', 'front.ts', 'if (port === 443) return refuse(visit, 400, …);'),
  one('one request for each connection to the proxy', 'net-second-request', 'carry.ts', "single: visit.by === 'http'", 'single: false'),
  one('SOCKS connects, and nothing else', 'net-socks-addresses', 'socks5.ts', "if (bytes[1] !== CONNECT) return { kind: 'bad', reply: SOCKS.commandUnknown };"),
  one('SOCKS as it is written', 'net-socks-addresses', 'socks5.ts', 'if (bytes[0] !== 5 || bytes[2] !== 0)', 'if (bytes[0] !== 5)'),
  one('SOCKS without a password only where there is no token', 'net-socks-addresses', 'front.ts', '!(isToken === null ? greeting.withoutPassword : greeting.withPassword)', '!(isToken === null || greeting.withPassword)'),
  // The greeting of TLS.
  one('TLS begins with a handshake', 'net-not-tls', 'client-hello.ts', 'if (bytes[at] !== 22) return notTls;'),
  one('TLS has a version', 'net-not-tls', 'client-hello.ts', 'if (at + 1 < bytes.length && bytes[at + 1] !== 3) return notTls;'),
  one('a client greets', 'net-not-tls', 'client-hello.ts', 'if (gathered === 0 && part.length > 0 && part[0] !== 1) return notTls;'),
  one('records have a length', 'net-tls-greeting', 'client-hello.ts', 'if (length === 0 || length > 16_384)', 'if (length > 65_536)'),
  one('a greeting lies in few records', 'net-tls-greeting', 'client-hello.ts', 'const MAX_RECORDS = 64;', 'const MAX_RECORDS = 6400;'),
  one('a greeting has an end', 'net-tls-greeting', 'client-hello.ts', 'const MAX_BYTES = 65_536;', 'const MAX_BYTES = 65_536_000;'),
  all('nothing after the greeting', 'net-tls-greeting', of('client-hello.ts', ["if (gathered > needed) return { kind: 'bad', problem: … };", ''], ['at + 2 + message.readUInt16BE(at) !== message.length) return cut;\n  return parseExtensions(message.subarray(at + 2));', 'at + 2 + message.readUInt16BE(at) > message.length) return cut;\n  return parseExtensions(message.subarray(at + 2, at + 2 + message.readUInt16BE(at)));'])),
  one('extensions are whole', 'net-tls-greeting', 'client-hello.ts', 'if (at + 2 > message.length || at + 2 + message.readUInt16BE(at) !== message.length) return cut;'),
  one('an extension stands there once', 'net-tls-greeting', 'client-hello.ts', 'if (seen.has(type)) return …;'),
  one('one name', 'net-tls-greeting', 'client-hello.ts', 'if (content[2] !== 0 || content.readUInt16BE(3) !== content.length - 5) return null;', 'if (content[2] !== 0) return null; content = content.subarray(0, 5 + content.readUInt16BE(3));'),
  one('a name of a host', 'net-tls-greeting', 'client-hello.ts', 'if (content[2] !== 0 || content.readUInt16BE(3) !== content.length - 5) return null;', 'if (content.readUInt16BE(3) !== content.length - 5) return null;'),
  one('an extension is whole', 'net-tls-greeting', 'client-hello.ts', 'if (end > bytes.length) return …; if (seen.has(type))', 'if (seen.has(type))'),
  one('a list of names is whole', 'net-tls-greeting', 'client-hello.ts', 'if (content.length < 6 || content.readUInt16BE(0) !== content.length - 2) return null;', 'if (content.length < 6) return null;'),
  one('a list of protocols has its length', 'net-tls-greeting', 'client-hello.ts', 'if (content.length < 2 || content.readUInt16BE(0) !== content.length - 2) return null;', 'if (content.length < 2) return null;'),
  one('a protocol has its length', 'net-tls-greeting', 'client-hello.ts', 'if (end === at + 1 || end > content.length) return null;', 'if (end === at + 1) return null;'),
  one('a list of protocols is whole', 'net-tls-greeting', 'client-hello.ts', 'const names = parseAlpn(content); if (names === null) return …;', 'const names = parseAlpn(content); if (names === null) { at = end; continue; }'),
  one('nothing is hidden in it', 'net-tls-greeting', 'tunnel.ts', 'if (hello.ech) return …;'),
  one('TLS names the host', 'net-tls-greeting', 'tunnel.ts', 'if (hello.serverName === null) return …;', 'if (hello.serverName === null) return null;'),
  one('TLS names no other host', 'net-tls-greeting', 'tunnel.ts', 'return named?.host === host ? null : …;', 'return named === undefined ? null : null;'),
  one('TLS on any port', 'net-tls-greeting', 'tunnel.ts', "if (bytes[0] !== TLS_HANDSHAKE || (bytes.length > 1 && bytes[1] !== TLS_MAJOR)) return 'go';", "if (bytes[0] !== 0 || TLS_HANDSHAKE + TLS_MAJOR > 0) return 'go';"),
  one('nothing passes before the greeting', 'net-tls-greeting', 'tunnel.ts', "if (content === 'any') return start(first, null);", 'if (content !== null) return start(first, null);'),
  one('HTTP/1 and no other protocol', 'net-tls-greeting', 'secure-ends.ts', "secureContext: authority.contextFor(host),\n    ALPNProtocols: ['http/1.1'],", 'secureContext: authority.contextFor(host),'),
  one('hosts with narrow rules are inspected in TLS', 'net-tls-greeting', 'carry.ts', 'if (permission.verdict.inspect || secrets.length > 0) {', 'if (secrets.length > 0) {'),
  // Heads.
  one('one Host', 'net-two-hosts', 'request-head.ts', 'if (hosts > 1) return bad(…);'),
  one('a Host', 'cred-endpoint-elsewhere', 'request-head.ts', "if (hosts === 0 && version === '1.1') return bad(…);"),
  one('a CONNECT has no body', 'net-smuggling', 'request-head.ts', "if (method === 'CONNECT' && (body.kind === 'chunked' || (body.kind === 'length' && body.bytes > 0))) {", "if (method === '') {"),
  one('versions that are spoken', 'net-upgrade', 'request-head.ts', "if (version !== '1.1' && version !== '1.0') return bad(…, 505);"),
  one('targets have an end', 'net-long-words', 'request-head.ts', 'const MAX_TARGET_BYTES = 32_768;', 'const MAX_TARGET_BYTES = 32_768_000;'),
  one('targets are of plain signs', 'net-smuggling', 'request-head.ts', '([\\x21-\\x7e]+) HTTP', '([^ ]+) HTTP'),
  one('heads have an end', 'net-long-words', 'head.ts', 'export const MAX_HEAD_BYTES = 65_536;', 'export const MAX_HEAD_BYTES = 65_536_000;'),
  one('heads have few fields', 'net-long-words', 'head.ts', 'const MAX_FIELDS = 200;', 'const MAX_FIELDS = 20_000;'),
  one('one kind of length', 'net-smuggling', 'head.ts', 'if (lengths.length > 0) return bad(…);'),
  one('one length', 'net-smuggling', 'head.ts', 'if (lengths.length > 1) return bad(…);'),
  one('one coding', 'net-smuggling', 'head.ts', "if (codings.length > 1 || codings[0] !== 'chunked') return bad(…);"),
  one('no chunks in old versions', 'net-smuggling', 'head.ts', "if (version === '1.0') return bad(…);"),
  one('a length is a number', 'net-smuggling', 'head.ts', 'if (!/^[0-9]{1,16}$/.test(length) || !Number.isSafeInteger(Number(length))) {', 'if (length === undefined) {'),
  one('lines end with CR', 'net-smuggling', 'head.ts', 'if (bytes[at - 1] !== CR) return bad(…);'),
  one('header fields have names', 'net-smuggling', 'head.ts', 'if (!NAME.test(name)) return bad(…);'),
  one('header fields have no control characters', 'net-smuggling', 'head.ts', 'if (!VALUE.test(value)) return bad(…);'),
  // Inspected requests.
  one('no TRACE', 'net-upgrade', 'request-target.ts', "const NEVER: readonly string[] = ['TRACE', 'TRACK', 'CONNECT'];", 'const NEVER: readonly string[] = [];'),
  one('no TRACE with a secret', 'cred-sent-back-later', 'request-target.ts', "const NEVER: readonly string[] = ['TRACE', 'TRACK', 'CONNECT'];", 'const NEVER: readonly string[] = [];'),
  one('methods are in upper case', 'net-narrow-rules', 'request-target.ts', "if (method !== upper) return say('-', 400, …);", 'if (method !== upper) return judge(at, { ...head, method: upper });'),
  one('no header names another method or path', 'net-narrow-rules', 'request-target.ts', 'if (!at.anyPath && head.headers.some(isOverride)) {', 'if (!at.anyPath && head.headers.every(isOverride)) {'),
  one('every reading of a path is judged', 'net-narrow-rules', 'request-target.ts', 'return [...new Set([path, decoded, cut(path), cut(decoded)])];', 'return [...new Set([path, decoded, cut(path), cut(decoded)])].slice(0, 1);'),
  one('%2F is "/" to some', 'net-narrow-rules', 'request-target.ts', "const decoded = path.replaceAll('%2F', '/');", 'const decoded = path;'),
  one('";" ends a part to some', 'net-narrow-rules', 'request-target.ts', 'text.replaceAll(/(?:;|%3B)[^/]*/g, \'\')', 'text'),
  one('one spelling of a path', 'net-narrow-rules', 'request-target.ts', 'inside.replaceAll(/%[0-9a-f]{2}/gi, plainOrUpper)', 'inside.replaceAll(/%2f|%3b/gi, plainOrUpper)'),
  one('no fragment', 'net-narrow-rules', 'request-target.ts', "if (local.includes('#')) return refused(…);"),
  one('no backslash', 'net-narrow-rules', 'request-target.ts', "if (path.includes('\\\\') || /%5c/i.test(path)) return …;"),
  one('no "%" that stands for nothing', 'net-narrow-rules', 'request-target.ts', 'if (/%(?![0-9a-f]{2})/i.test(path)) return …;'),
  one('no control character in a path', 'net-narrow-rules', 'request-target.ts', 'if (/%[01][0-9a-f]|%7f/i.test(path)) return …;'),
  one('no dot that is written as something else', 'net-narrow-rules', 'request-target.ts', 'if (/%2e|%25(?:2e|2f|5c)/i.test(path)) return …;'),
  one('no empty part', 'net-narrow-rules', 'request-target.ts', "if (parts.slice(0, -1).includes('')) return …;"),
  one('no way up', 'net-narrow-rules', 'request-target.ts', 'return parts.some((part) => /^\\.{1,2}(?:;|$)/.test(part)) ? … : null;', 'return parts.length < 0 ? "" : null;'),
  one('proxy fields are not passed on', 'net-hop-by-hop', 'request-rewrite.ts', "&& !lower.startsWith('proxy-')"),
  one('fields that Connection names are not passed on', 'net-hop-by-hop', 'request-rewrite.ts', '!OURS.has(lower) && !named.includes(lower) &&', '!OURS.has(lower) &&'),
  one('host and framing are written anew', 'net-hop-by-hop', 'request-rewrite.ts', '!OURS.has(lower) && !named.includes(lower) &&', '!named.includes(lower) &&'),
  one('a request that is not understood is the last one', 'net-second-request', 'intercept.ts', "tell(input, '-', '-', outcome, tally, started);\n    return false;", "tell(input, '-', '-', outcome, tally, started);\n    return true;"),
  one('a request for another host is the last one', 'net-second-request', 'intercept.ts', 'const understood = head !== null && status !== 400 && status !== 421;', 'const understood = head !== null;'),
  // Chunks of a request.
  one('the size of a chunk is a number', 'net-chunks', 'body.ts', 'else return …;', 'else if (digits.length > 100) return "";'),
  one('sizes do not overflow', 'net-chunks', 'body.ts', 'const MAX_SIZE_DIGITS = 12;', 'const MAX_SIZE_DIGITS = 100;'),
  one('a size ends in CR LF', 'net-chunks', 'body.ts', "case 'size-lf': if (byte !== LF) return …;", "case 'size-lf':"),
  one('a chunk is as long as its size', 'net-chunks', 'body.ts', 'if (byte !== CR) return …;', 'if (byte !== CR) return null;'),
  one('a chunk ends in CR LF', 'net-chunks', 'body.ts', "case 'data-lf': if (byte !== LF) return …;", "case 'data-lf':"),
  one('a trailer has an end', 'net-chunks', 'body.ts', 'if (trailer.length > MAX_TRAILER_BYTES) return …;'),
  one('lines of a trailer end with CR', 'net-chunks', 'body.ts', "if (!trailer.endsWith('\\r\\n')) return …;", "if (!trailer.endsWith('\\r\\n')) trailer = `${trailer.slice(0, -1)}\\r\\n`;"),
  one('a trailer is understood', 'net-chunks', 'body.ts', "if ('kind' in fields) return …;", "if ('kind' in fields) return null;"),
  one('a trailer changes nothing', 'net-chunks', 'body.ts', 'return moved ? … : null;', 'return moved ? null : null;'),
  // Answers.
  one('an answer has one kind of length', 'net-hostile-answers', 'head.ts', 'if (lengths.length > 0) return bad(…);'),
  one('an answer has a status', 'net-hostile-answers', 'response-head.ts', '([1-5][0-9][0-9])', '([0-9][0-9][0-9])'),
  one('framing of an answer is understood', 'net-hostile-answers', 'response-head.ts', "if (framing?.kind === 'bad') return framing;", "if (framing?.kind === 'bad') return bad('', 431) && readResponseHead(Buffer.from('HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n'), requestMethod);"),
  one('an unrequested upgrade is refused', 'net-hostile-answers', 'response-relay.ts', "if (!relay.upgrade || firstOf(head.headers, 'upgrade')?.toLowerCase() !== 'websocket') {", "if (firstOf(head.headers, 'upgrade')?.toLowerCase() !== 'websocket') {"),
  one('no upgrade but to a WebSocket', 'net-hostile-answers', 'response-relay.ts', "if (!relay.upgrade || firstOf(head.headers, 'upgrade')?.toLowerCase() !== 'websocket') {", 'if (!relay.upgrade) {'),
  one('no chunks for old clients', 'net-hostile-answers', 'response-relay.ts', "if (relay.version === '1.0' && head.body.kind === 'chunked')", "if (relay.version === '1.0' && head.status === 0)"),
  one('an answer that breaks off is never finished', 'net-hostile-answers', 'response-relay.ts', "if ('bad' in taken || !relay.count(taken.used.length)) return false;", "if ('bad' in taken) { await relay.write(Buffer.from('0\\r\\n\\r\\n')); return true; }"),
  one('an answer leads nowhere else', 'net-hostile-answers', 'response-relay.ts', "  'alt-svc',\n"),
  one('fields that Connection names are not passed on in an answer', 'net-hostile-answers', 'response-relay.ts', '(!HOP.has(lower) && !named.includes(lower))', '!HOP.has(lower)'),
  one('framing passes, whatever Connection says', 'net-hostile-answers', 'response-relay.ts', "const FRAMING: readonly string[] = ['content-length', 'transfer-encoding'];", 'const FRAMING: readonly string[] = [];'),
  one('an answer too many ends the connection', 'net-second-request', 'intercept.ts', "line.origin.source.state === 'open' && !line.origin.source.waiting;", "line.origin.source.state === 'open';"),
  // Secrets.
  one('a secret is for its header', 'cred-other-header', 'request-rewrite.ts', 'field[0].toLowerCase() === header ? [field[0], fillIn(field[1], secret, hide)] : field', '[field[0], fillIn(field[1], secret, hide)]'),
  one('no secret in clear', 'cred-in-clear', 'carry.ts', "inspect(visit, permission, first, { upstream: 'http', secrets: [], single", "inspect(visit, permission, first, { upstream: 'http', secrets: input.secretsFor(target.host, port), single"),
  one('the host of a secret is inspected', 'cred-in-clear', 'carry.ts', 'if (permission.verdict.inspect || secrets.length > 0) {', 'if (permission.verdict.inspect) {'),
  one('a secret is for its host', 'tls-secret-elsewhere', 'gateway.ts', 'secret.host === host && secret.port === port &&', 'secret.port === port &&'),
  one('a secret is for its port', 'tls-secret-elsewhere', 'gateway.ts', 'secret.host === host && secret.port === port &&', 'secret.host === host &&'),
  all('an endpoint has one name', 'cred-endpoint-elsewhere', of('name-listeners.ts', ['secret.viaEndpoint && secret.name === name', 'secret.viaEndpoint']), of('request-target.ts', ["return path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : null;", 'return path;'])),
  one('only some secrets have an endpoint', 'cred-endpoint-elsewhere', 'name-listeners.ts', 'secret.viaEndpoint && secret.name === name', 'secret.name === name'),
  one('every request to an endpoint is for it', 'net-second-request', 'request-target.ts', "return path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : null;", 'return path;'),
  all('a host proves who it is', 'cred-forged-host', of('secure-ends.ts', ['rejectUnauthorized: true,', 'rejectUnauthorized: false,'], ['settle(socket.authorized ? null : …)', 'settle(null)'])),
  one('values are taken out of bodies', 'cred-sent-back', 'response-relay.ts', 'const piece = redactor === null ? taken.used : redact(redactor, taken, chunked);', 'const piece = redactor === null || taken.data.length >= 0 ? taken.used : redact(redactor, taken, chunked);'),
  one('values are taken out of heads', 'cred-sent-back', 'response-relay.ts', 'return relay.redactor === null ? bytes : Buffer.concat([relay.redactor.pass(bytes), relay.redactor.end()]);', 'return bytes;'),
  one('values that come in pieces', 'cred-sent-back', 'redact.ts', 'const keep = heldLength(data, wanted);', 'const keep = Math.min(0, heldLength(data, wanted));'),
  one('values as JSON', 'cred-sent-back', 'request-rewrite.ts', '.add(JSON.stringify(value).slice(1, -1))'),
  one('values in URLs', 'cred-sent-back', 'request-rewrite.ts', '.add(encodeURIComponent(value))'),
  one('values in basic authentication', 'cred-sent-back', 'request-rewrite.ts', "hide.push(written.replace(/=+$/, ''));"),
  one('no compressed answer', 'cred-sent-back', 'response-relay.ts', "if (relay.redactor !== null && head.body.kind !== 'none' && coding.toLowerCase() !== 'identity') {", "if (relay.redactor !== null && coding === '') {"),
  one('no request asks for a compressed answer', 'cred-sent-back-later', 'request-rewrite.ts', 'const hidden = to.secrets.length > 0 ? UNREADABLE : [];', 'const hidden = to.secrets.length < 0 ? UNREADABLE : [];'),
  one('values are taken out of a WebSocket', 'cred-sent-back-later', 'web-socket.ts', 'redactor === null ? chunk : redactor.pass(chunk)', 'chunk'),
  one('the answer of a proxy is not shown', 'cred-proxy-password', 'upstream.ts', 'return { kind: \'closed\', code: `status ${status}` };', "return { kind: 'closed', code: heard.toString('latin1') };"),
  one('a deny holds at an endpoint too', 'cred-endpoint-elsewhere', 'name-listeners.ts', '? passages.permit(visit, target, first.port)', "? passages.permit(visit, target, first.port).then((asked) => asked.kind === 'granted' ? asked : { kind: 'granted' as const, verdict: { kind: 'allowed' as const, rule: { action: 'allow' as const, host: target.host, port: first.port, methods: null, path: null, origin: '' }, inspect: false }, target, rules: () => { throw new Error('not asked'); } })"),
  // Limits; see gateway-limits.ts.
  one('connections at one time', 'limit-connections', 'limits.ts', 'if (open >= limits.connections)', 'if (open >= 1_000_000)'),
  one('connections in a second', 'limit-per-second', 'limits.ts', 'if (tokens < 1)', 'if (tokens < -1_000_000)'),
  one('bytes out through a tunnel', 'limit-bytes-tunnel', 'relay.ts', 'counter.out(chunk.length) ? toOrigin(chunk) : stop()', 'counter.out(chunk.length) ? toOrigin(chunk) : toOrigin(chunk)'),
  one('bytes out by requests', 'limit-bytes-requests', 'intercept.ts', "if (!input.count('out', bytes.length)) return 'spent';", "input.count('out', bytes.length);"),
  one('no connection after the budget is spent', 'limit-bytes-tunnel', 'limits.ts', 'if (exhausted !== null) return exhausted;'),
  one('a silent client is disconnected', 'limit-silence', 'connection.ts', 'if (now() - since < input.firstWordsMs) return;', 'if (now() - since < 1_000_000) return;'),
  one('a client that does not begin TLS is disconnected', 'limit-silence', 'tunnel.ts', 'setTimeout(() => refuse(…), visit.firstWordsMs)', 'setTimeout(() => refuse(…), 1_000_000)'),
  one('a connection waits for the yes of the user', 'limit-asked', 'authorize.ts', 'if (verdict.kind === \'allowed\') return { kind: \'granted\', verdict, target, rules: input.rules };', "if (verdict.kind === 'allowed' || input.asks !== null) return { kind: 'granted', verdict: { kind: 'allowed', rule: { action: 'allow', host: target.host, port, methods: null, path: null, origin: '' }, inspect: false }, target, rules: input.rules };"),
  one('a limit on waiting asks', 'limit-asks', 'asks.ts', 'const MOST_ASKS = 100;', 'const MOST_ASKS = 100_000;'),
  one('a connection that asks for nothing ends', 'limit-idle', 'intercept.ts', 'setTimeout(() => line.isIdle && line.client.socket.destroy(),', 'setTimeout(() => line.isIdle && line.client.socket.pending,'),
  one('a head comes in time', 'limit-idle', 'intercept.ts', 'clearTimeout(timer);\n    timer = setTimeout(giveUp, limit);', 'clearTimeout(timer);'),
  one('a limit on names with an address', 'limit-names', 'names.ts', 'if (addresses.size >= MOST_NAMES) return null;'),
  one('a limit on simultaneous lookups', 'limit-lookups', 'resolve.ts', 'if (underWay.size >= MOST_UNDER_WAY)', 'if (underWay.size < 0)'),
  one('a limit on refused connections that get an answer', 'limit-turned-away', 'connection.ts', 'if (turnedAway.size >= MOST_TURNED_AWAY) return void socket.destroy();'),
  one('a token for HTTP', 'limit-token', 'front.ts', 'if (travel.isToken !== null && !travel.isToken(passwordOf(head))) return refuse(visit, 407, NO_TOKEN);'),
  one('a token for SOCKS', 'limit-token', 'front.ts', "if (given.kind === 'password' && isToken(given.password))", "if (given.kind === 'password')"),
];

/** One mutant for each block of special addresses. All IPv6 blocks but one lie outside the routed addresses anyway. */
function blocks(): Mutant[] {
  const source = SOURCE.read(SOURCE.file('gateway/dial/address.ts'));
  const lines = [...source.matchAll(/^ {4}\['([0-9.]+\/\d+|2001::\/23)', '[^']+'\],\n/gm)];
  return lines
    .map(([line, block = '']) =>
      one(`the block ${block}`, block.includes(':') ? 'dns-to-special6' : 'dns-to-special', 'address.ts', line),
    )
    .filter(({ name }) => name !== WITHIN_ANOTHER);
}

const WITHIN_ANOTHER = 'the block 255.255.255.255/32';

export const MUTANTS: readonly Mutant[] = [...BY_HAND, ...blocks()];
