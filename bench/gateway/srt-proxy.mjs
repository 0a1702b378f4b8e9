// bench/gateway/srt-proxy.mjs: the HTTP proxy of @anthropic-ai/sandbox-runtime alone, with its own matcher of names.
// Arguments: the directory of its package, the port, and the allowed names separated by commas.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [directory, port, names] = process.argv.slice(2);
const part = (name) => import(pathToFileURL(join(directory, 'dist/sandbox', name)).href);
const { createHttpProxyServer } = await part('http-proxy.js');
const { matchesDomainPatternWithPort } = await part('domain-pattern.js');
const allowed = names.split(',');
const server = createHttpProxyServer({
  filter: (to, host) => allowed.some((pattern) => matchesDomainPatternWithPort(host, to, pattern)),
});
server.listen(Number(port), '127.0.0.1', () => process.stdout.write('ready\n'));
