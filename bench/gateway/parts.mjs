// bench/gateway/parts.mjs: the cost of single steps of the gateway, in a separate process: a certificate, and a decision. Arguments: the
// directory of the compiled code, and the number of certificates. Prints one line of JSON.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [dist, certificates] = process.argv.slice(2);
const part = (name) => import(pathToFileURL(join(dist, name)).href);
const { createAuthority } = await part('gateway/intercept/certificate.js');
const { compileRules } = await part('gateway/rules.js');

const authority = createAuthority({ commonName: 'bench', days: 30, now: new Date() });
let host = 0;
const leaf = () => authority.leafFor(`leaf${(host += 1)}.bench.test`);
const context = () => authority.contextFor(`leaf${(host += 1)}.bench.test`);
const found = {
  leafUs: cpuEach(leaf, Number(certificates)),
  contextUs: cpuEach(context, Number(certificates)),
  decisionUs: {},
};
for (const count of [10, 1000, 10_000]) {
  const rules = compileRules(
    Array.from({ length: count }, (_, i) => rule(`${i % 2 === 0 ? '*.' : ''}name${i}.rules.test`)),
  );
  const asked = [`name${count - 1}.rules.test`, `below.name${count - 2}.rules.test`, 'unknown.rules.test'];
  let i = 0;
  const expected = ['allowed', 'allowed', 'denied'];
  for (const [at, name] of asked.entries())
    if (rules.connect(name, 443).kind !== expected[at]) throw new Error(`${name} is not ${expected[at]}`);
  found.decisionUs[count] = cpuEach(() => rules.connect(asked[(i += 1) % asked.length], 443), 200_000);
}
process.stdout.write(`${JSON.stringify(found)}\n`);

function rule(name) {
  return { action: 'allow', host: name, port: 443, methods: null, path: null, origin: 'bench' };
}

/** Processor time of one call, after an unmeasured first call. */
function cpuEach(act, times) {
  for (let i = 0; i < times / 4; i += 1) act();
  const before = process.cpuUsage();
  for (let i = 0; i < times; i += 1) act();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / times;
}
