// test/attacks/mutation/gateway-stage.ts: the real gateway, or one with replaced source, among the hosts of `ags doctor --attack`. Attempts
// connect to it directly, so only the gateway can stop them. All traffic stays on loopback.
import { createSocket } from 'node:dgram';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { breaches, type Attack } from '../../../src/attack/table/attack.ts';
import { attackedNetwork } from '../../../src/attack/table/attacked-network.ts';
import { DOMAIN, openOrigin } from '../../../src/attack/table/origin.ts';
import { createAuthority, type Authority } from '../../../src/gateway/intercept/certificate.ts';
import type * as GatewayModule from '../../../src/gateway/gateway.ts';
import type { GatewayListener, GatewayInput } from '../../../src/gateway/gateway.ts';
import { LIMITS, rulesOf } from '../../gateway/fixture.ts';
import { runOnHost } from '../run-inside.ts';
import { pathIn, SOURCE, type Piece } from './mutated-source.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const WORD = 'CANARY-0123456789abcdef';
const SECRET = `${WORD}/"`;
/** Addresses of "this machine", and a block that is too wide to grant the address in it. */
const OWN = ['192.0.2.77', '2002:808:808::1'];
const WIDE = 'fd00:c1::/32';

const [trusted, forger, inside] = ['trusted', 'nobody', 'inside'].map((commonName) =>
  createAuthority({ commonName, days: 2, now: new Date() }),
) as [Authority, Authority, Authority];

/** Redirects connections that a mutant lets through to this machine. */
export const STAY: readonly Piece[] = ['own-buffer.ts', 'carry.ts'].map((file) => [
  `gateway/${file}`,
  'connect({ host: address, port, allowHalfOpen: true, noDelay: true',
  "connect({ host: /^(127\\.|::)/.test(address) ? address : '127.255.255.255', port, allowHalfOpen: true, noDelay: true",
]);

export type Setting = Partial<Pick<GatewayInput, 'isToken' | 'waits'>> & {
  readonly policy?: Partial<GatewayInput['policy']>;
  /** Replacements that come before those of the mutant. */
  readonly given?: readonly Piece[];
};

/** The attempts that succeed, and what the hosts outside noticed. */
export async function attackGateway(
  edits: readonly Piece[],
  attacks: readonly Attack[],
  setting: Setting = {},
): Promise<string[]> {
  await using built = await build([...(setting.given ?? []), ...edits]);
  await using origin = await openOrigin({
    secret: SECRET,
    certificateFor: (host, known) => (known ? trusted : forger).contextFor(host),
    ownAddresses: OWN,
  });
  const open: { close(): unknown }[] = [];
  const listen = async (server: Server, address = '127.0.0.1', port = 0): Promise<number> => {
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, address, resolve));
    open.unshift(server);
    return (server.address() as AddressInfo).port;
  };
  try {
    const canary = await listen(createServer((socket) => void socket.on('error', () => undefined).end('CANARY\n')));
    const network = attackedNetwork(origin, canary);
    const placeholder = (name: string): string => `ags-placeholder-${name}-0123456789abcdef`;
    const rules = rulesOf(network.allow, network.deny);
    const gateway = built.createGateway({
      run: 'attacked',
      policy: {
        mode: 'on',
        presets: [],
        rules,
        addresses: [...network.addresses, WIDE],
        tcp: [],
        publish: [],
        upstreams: [],
        dns: network.dns,
        limits: LIMITS,
        askSeconds: 1,
        ...setting.policy,
      },
      rules,
      secrets: network.secrets.map((rule) => ({
        ...rule,
        value: SECRET,
        placeholder: placeholder(rule.name),
        viaEndpoint: rule.endpoint !== null,
      })),
      upstreams: network.upstreams.map((one) => ({ ...one, auth: `user:${WORD}` })),
      authority: inside,
      roots: () => [trusted.certificatePem],
      ownAddresses: () => OWN,
      grantAddresses: new Map(),
      log: () => undefined,
      onLimit: () => undefined,
      onAsk: () => undefined,
      who: null,
      isToken: setting.isToken ?? null,
      now: Date.now,
      waits: { connectMs: 1000, ...setting.waits },
    });
    open.unshift(gateway);
    const listener = (kind: GatewayListener['kind'] & ('proxy' | 'tls' | 'web' | 'endpoint')): Server =>
      createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
        socket.on('error', () => undefined);
        gateway.enter({ kind }, socket);
      });
    const names = createSocket('udp4');
    names.on('message', (question, peer) => {
      const answer = gateway.answerName(question);
      if (answer !== null) names.send(answer, peer.port, peer.address);
    });
    await new Promise<void>((resolve) => names.bind(0, '127.0.0.1', resolve));
    open.unshift(names);
    const places = {
      NETWORK: 'on',
      LISTENER: String(await listen(listener('proxy'))),
      NAMES: String(names.address().port),
      TLS_LISTENER: String(await listenEverywhere(() => listener('tls'), listen)),
      WEB_LISTENER: String(await listenEverywhere(() => listener('web'), listen)),
      ENDPOINT: String(await listen(listener('endpoint'))),
      LOOPBACK_PORT: String(canary),
      ECHO: `echo.${DOMAIN}:${origin.port}`,
      SECURE: String(origin.securePort),
      DOMAIN,
      HOSTNAME: 'host.invalid',
      PROJECT: '/nonexistent',
    } as const;
    const variables = network.secrets.flatMap(({ name, env }) => (env === null ? [] : [[env, placeholder(name)]]));
    const answers = await runOnHost(attacks, places, { PATH: '/usr/bin:/bin', ...Object.fromEntries(variables) });
    return [
      ...attacks.flatMap((one, i) => breaches(one, answers[i] ?? '').map((line) => `${one.id}: ${line}`)),
      ...[...origin.asked].filter((name) => !name.endsWith(`.${DOMAIN}`)).map((name) => `asked for ${name}`),
      ...origin.wrong,
      ...(answers.some((answer) => answer.includes(WORD)) ? ['a secret came out'] : []),
    ];
  } finally {
    for (const one of open) one.close();
  }
}

type Listen = (server: Server, address: string, port?: number) => Promise<number>;

/** Listens at one port of the first addresses that names get, and of one without a name. Another process may have the port. */
async function listenEverywhere(listener: () => Server, listen: Listen, tries = 10): Promise<number> {
  const port = await listen(listener(), '127.64.0.1');
  try {
    for (const address of ['127.64.0.2', '127.99.0.1']) await listen(listener(), address, port);
    return port;
  } catch (error) {
    if (tries === 0) throw error;
    return listenEverywhere(listener, listen, tries - 1);
  }
}

async function build(edits: readonly Piece[]): Promise<typeof GatewayModule & AsyncDisposable> {
  const load = (): Promise<typeof GatewayModule> => import('../../../src/gateway/gateway.ts');
  if (edits.length === 0) return { ...(await load()), [Symbol.asyncDispose]: () => Promise.resolve() };
  const dir = mkdtempSync(join(tmpdir(), 'ags-gateway-mutant-'));
  const changed = new Map([...SOURCE.edit([...edits, ...STAY])].map(([path, text]) => [join(ROOT, path), text]));
  const bundle = await rolldown({
    input: { gateway: join(ROOT, pathIn(load)) },
    platform: 'node',
    logLevel: 'silent',
    plugins: [{ name: 'mutant', load: (id) => changed.get(id) ?? null }],
  });
  await bundle.write({ dir, format: 'cjs', entryFileNames: '[name].cjs', chunkFileNames: '[name].cjs' });
  await bundle.close();
  const made = createRequire(import.meta.url)(join(dir, 'gateway.cjs')) as typeof GatewayModule;
  return {
    ...made,
    [Symbol.asyncDispose]() {
      rmSync(dir, { recursive: true, force: true });
      return Promise.resolve();
    },
  };
}
